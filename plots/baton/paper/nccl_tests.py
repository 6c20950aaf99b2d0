# SPDX-License-Identifier: Apache-2.0
"""Our ncclAllGather beside NVIDIA's own nccl-tests: the same library, machine, sizes and cadence."""

import re

from baton import checks, results, words
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Table, Text

OURS = "nccl_all_gather"
FILE = re.compile(r"nccl-tests-(\w+)")  # the group is the cadence
WITHIN = 0.03


def tests(text):
    """Returns {bytes gathered: (out of place, in place) busbw in bytes a second} of an output of all_gather_perf."""
    found = {}
    for line in text.splitlines():
        columns = line.split()
        if columns and columns[0].isdecimal():
            try:
                found[int(columns[0])] = float(columns[7]) * 1e9, float(columns[11]) * 1e9
            except (IndexError, ValueError) as error:
                raise results.ResultsError("an output of nccl-tests: expected numbers in columns 8 and 12, found "
                                           f"{checks.shown(line)}") from error
    return found


def version(text):
    found = re.search(r"nccl-tests version (\S+)", text)
    return found[1] if found else "of unknown version"


def gathered_bytes(record):
    """Returns the bytes of every rank's result: the maps of all ranks, decay and state."""
    return record["ranks"] * (record["state_bytes"] + 4 * record["heads"] * record["d_k"])


def ours(records, cadence):
    """Returns {bytes gathered: record}, the newest record of each size."""
    wanted = [record for record in records if record["name"] == OURS and record["cadence"] == cadence
              and results.why_no_time(record) is None]
    return {gathered_bytes(record): record for record in sorted(wanted, key=lambda record: record["time"])}


def blocks(machine, records, texts):
    """Yields a table for each output of nccl-tests beside the records. `texts` is {name of a file: its text}."""
    for name, text in sorted(texts.items()):
        cadence = FILE.fullmatch(name)
        if cadence:
            yield from compared(machine, cadence[1], tests(text), version(text), ours(records, cadence[1]))


def compared(machine, cadence, theirs, of_version, here):
    sizes = sorted(set(theirs) & set(here))
    if not sizes:
        yield Text(f"`nccl-tests-{cadence}.txt` of {machine} has no size that a record of `{OURS}` has too.")
        return
    title = f"busbw of ncclAllGather by bytes gathered, GB/s ({machine}, {cadence})"
    yield Table(f"nccl_tests_{machine}_{cadence}", title, [words.binary_size(size) for size in sizes], [
                    Row("nccl-tests", f"measured, {of_version}", [
                        bandwidth(theirs[size][0], f"nccl-tests {of_version} on {machine}") for size in sizes]),
                    Row(f"`{OURS}`", "measured, nccl native", [
                        bandwidth(here[size]["busbw_bytes_per_second"], cells.origin(here[size], machine), here[size])
                        for size in sizes]),
                    Row("", "ours / nccl-tests", [quotient(here[size], theirs[size][0]) for size in sizes])],
                [f"Out of place; goal: within {100 * WITHIN:.0f} %. nccl-tests prints means, ours are medians of the "
                 "slowest rank."])
    yield from short(cadence, sizes, theirs, here)


def bandwidth(rate, origin, record=None):
    return cells.Cell(f"{rate * 1e-9:.1f}", f"{rate * 1e-9:.6g}", "GB/s", cells.MEASURED, origin,
                      record["commit"] if record else "", record["time"] if record else "",
                      run=record["run"] if record else "")


def quotient(record, rate):
    value = record["busbw_bytes_per_second"] / rate
    return cells.derived(value, f"{value:.2f}", "", "measured / measured")._replace(off=abs(value - 1) > WITHIN)


def short(cadence, sizes, theirs, here):
    """Names the sizes that are further apart, and the distance of nccl-tests' own two columns at these sizes."""
    apart = {size: here[size]["busbw_bytes_per_second"] / theirs[size][0] for size in sizes}
    off = {size: value for size, value in apart.items() if abs(value - 1) > WITHIN}
    if not off:
        yield Text(f"All {len(sizes)} sizes, {cadence}, are within {100 * WITHIN:.0f} %.")
        return
    told = ", ".join(f"{words.binary_size(size)} ({value:.2f})" for size, value in off.items())
    own = max(abs(theirs[size][1] / theirs[size][0] - 1) for size in off)
    yield Text(f"**Not within {100 * WITHIN:.0f} %, {cadence}:** {told}. The library and its call are the same, so what "
               "differs is how a round is timed, and how steady the call is from one minute to the next: at these sizes "
               f"nccl-tests' own columns, in place and out of place, are up to {100 * own:.0f} % apart.")
