# SPDX-License-Identifier: Apache-2.0
"""The table of `./run peers`: kernels here, and those of other projects with their errors and ratios."""

import collections

from baton import estimates
from baton.checks import PASSES, ResultsError
from baton.peers.kernels import LEFT_OUT, MOST_ERROR, PEERS

OURS = "baton"

# `median` is the estimate of the launches' medians.
Time = collections.namedtuple("Time", "median least most")


def rows(layers, ours, theirs):
    """Yields (layer, kernel, version, {pass: Time}, what it leaves out, error, ratios to ours), a layer's own row first."""
    for layer in layers:
        own = times(record for record in ours if record["attention"] == layer and record.get("median_seconds"))
        if own:
            errors = [record["relative_error"] for record in ours if record["attention"] == layer and "relative_error" in record]
            yield layer, OURS, "", own, None, max(errors, default=None), {}
        for kernel in PEERS[layer]:
            of_kernel = [record for record in theirs if record["kernel"] == kernel]
            found = times(of_kernel)
            if found:
                yield (layer, kernel, of_kernel[0]["version"], found, LEFT_OUT.get(of_kernel[0]["peer"]),
                       max(record["error"] for record in of_kernel),
                       {which: found[which].median / own[which].median for which in found if which in own})


def times(found):
    """Returns the time of each pass over the launches."""
    by_pass = collections.defaultdict(list)
    for record in found:
        by_pass[record["pass"]].append(record["median_seconds"])
    return {which: Time(estimates.mean(all_), min(all_), max(all_)) for which, all_ in by_pass.items()}


def text(found):
    """One line a kernel: medians in ms over launches with the least and the most, whether it is exact, error, and times as
    long as ours. A line below says what a kernel leaves out that is not exact."""
    if not found:
        raise ResultsError("nothing was measured; './run doctor' says what this machine lacks")
    lines = [f"{'layer':8} {'kernel':26} {'version':18}" + "".join(f"{which + ', ms':>24}" for which in PASSES)
             + f" {'exact':>6} {'error':>8}  over {OURS}"]
    for layer, kernel, version, passes, left_out, error, ratios in found:
        cells = "".join(f"{shown(passes.get(which)):>24}" for which in PASSES)
        rates = " / ".join(f"{ratios[which]:.2f}" if which in ratios else "-" for which in PASSES) if ratios else ""
        wrong = error is not None and not error <= MOST_ERROR
        lines.append(f"{layer:8} {kernel:26} {version:18}{cells} {'no' if left_out else 'yes':>6} "
                     f"{'-' if error is None else f'{error:.1e}':>8}  "
                     + ("WRONG: it computes something else" if wrong else rates))
    lines += [f"not exact: {left_out}" for left_out in dict.fromkeys(row[4] for row in found) if left_out]
    return "\n".join(line.rstrip() for line in lines)


def shown(time):
    return f"{time.median * 1e3:.3f} [{time.least * 1e3:.3f}, {time.most * 1e3:.3f}]" if time else "-"
