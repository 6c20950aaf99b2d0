# SPDX-License-Identifier: Apache-2.0
"""Joins the launches of a case on both sides, and says what else about the case changed.

Launches that ran in turns carry the key `pair`. They are compared pair by pair, so that what drifts over minutes hits
both sides alike. Others are compared as two groups.
"""

import collections
import math

from baton import estimates

# The launches of both sides of one case, as verdicts need them.
Pairs = collections.namedtuple("Pairs", "estimate seconds launches note changes measured_changes")

# Keys whose changes explain a time, with the words for them.
EXPLAINS = {"implementation": "run by", "hops": "hops", "sent_bytes": "bytes", "blocks": "blocks",
            "messages": "messages", "wire_dtype": "wire", "dtype": "dtype"}
BOUND_TOLERANCE = 0.05  # alpha and beta are measured anew in each launch


def pair(a, b, name):
    """Joins the launches of the case `name`, which both sides timed."""
    ours, theirs = a.cases[name], b.cases[name]
    before, after = ours.medians(), theirs.medians()
    seconds = estimates.mean(before.values()), estimates.mean(after.values())
    note = _note(ours, theirs, before, after)
    launches = (len(before), len(after))
    if min(seconds) <= 0:  # a rank alone in the simulator takes no time
        estimate = estimates.exact(0.0 if seconds[0] == seconds[1] else math.copysign(math.inf, seconds[1] - seconds[0]))
    elif ours.is_exact and theirs.is_exact:
        estimate = estimates.exact(math.log(seconds[1] / seconds[0]))
    else:
        estimate, launches = _estimate(a, b, before, after)
    return Pairs(estimate, seconds, launches, note, changes(ours, theirs), measured_changes(ours, theirs))


def _estimate(a, b, before, after):
    """Returns the estimate of measured launches, None if there are too few, and how many of each side it is made of."""
    in_turns = all(launch in a.pairs for launch in before) and all(launch in b.pairs for launch in after)
    ours, theirs = ({side.pairs[launch] if in_turns else (letter, launch): seconds for launch, seconds in times.items()}
                    for letter, side, times in (("A", a, before), ("B", b, after)))
    return estimates.of_launches(ours, theirs)[1:]


def _note(ours, theirs, before, after):
    """Says in how many launches a case was not timed, if it was in others."""
    missing = [(side, len(case.launches) - len(timed)) for side, case, timed in
               (("A", ours, before), ("B", theirs, after)) if len(case.launches) > len(timed)]
    return ", ".join(f"not timed in {count} launches of {side}" for side, count in missing)


def changes(a, b):
    """Returns what else changed between two cases, as texts such as `hops 7 -> 3`."""
    return [f"{word} {_values(a, key)} -> {_values(b, key)}" for key, word in EXPLAINS.items()
            if set(a.values(key)) != set(b.values(key))]


def measured_changes(a, b):
    """The same of what is measured: the bound, and the rank that was last in most rounds."""
    texts = []
    before, after = a.mean_of("bound_seconds"), b.mean_of("bound_seconds")
    if before and after and abs(math.log(after / before)) > BOUND_TOLERANCE:
        texts.append(f"bound {before * 1e6:.4g} -> {after * 1e6:.4g} us")
    last = [_last(case) for case in (a, b)]
    if None not in last and last[0] != last[1]:
        texts.append(f"last most often: rank {last[0]} -> {last[1]}")
    return texts


def _values(case, key):
    return " or ".join(case.values(key)) or "unknown"


def _last(case):
    """Returns the rank that was last in most rounds, if it was so in at least half of them."""
    counts = [record["rounds_as_last"] for record in case.records if record.get("rounds_as_last")]
    if not counts:
        return None
    total = [sum(column) for column in zip(*counts)]
    return total.index(max(total)) if 2 * max(total) >= sum(total) else None
