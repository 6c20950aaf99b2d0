# SPDX-License-Identifier: Apache-2.0
"""The verdict on each case, and the exit code that follows.

A case is `slower` or `faster` if its ratio differs from 1 by Holm's procedure over all cases (so that equal builds have
any such case in at most FAMILY_ERROR of all comparisons) and the estimate lies beyond the margin. It is the `same` if
the 95 % interval of its ratio lies within the margin. Else the launches cannot tell. docs/comparing.md says why.
"""

import collections
import math

from baton import cases, estimates
from baton.compare import pairing

SLOWER, WRONG, MISSING = "slower", "wrong", "missing"
CANNOT_TELL, NEW, FASTER, SAME = "cannot tell", "new", "faster", "same"
ORDER = (WRONG, MISSING, SLOWER, CANNOT_TELL, NEW, FASTER, SAME)

FAMILY_ERROR = 0.01
LEAST_LAUNCHES = 3
MOST_LAUNCHES = 1000  # nobody runs more; "over 1000" is said instead

EXIT_SAME, EXIT_WORSE, EXIT_CANNOT_TELL = 0, 5, 6

# The verdict on one case. `seconds` are the estimates of A and B over their launches, None where there are none; `launches` their
# numbers (pairs twice); `needs` is how many would tell, where they cannot; `note` says why it is wrong, missing or new.
Finding = collections.namedtuple("Finding", "case verdict estimate interval seconds launches needs note changes")


def judge(a, b, margin=estimates.MARGIN):
    """Returns the findings of all cases of both sides, worst first. Throws cases.Refused if nothing is in common."""
    names = sorted(a.cases.keys() | b.cases.keys())
    findings = [finding for name in names if (finding := _without_times(name, a.cases.get(name), b.cases.get(name)))]
    joined = {name: pairing.pair(a, b, name) for name in names
              if _is_timed(a.cases.get(name)) and _is_timed(b.cases.get(name))}
    if not joined and not findings:
        raise cases.Refused("no case was timed on either side, so there is nothing to compare")
    findings += _judge_times(joined, math.log(1 + margin))
    return sorted(findings, key=lambda one: (ORDER.index(one.verdict), -one.estimate.log_ratio if one.estimate else 0,
                                             one.case))


def exit_code(findings):
    verdicts = {finding.verdict for finding in findings}
    if verdicts & {SLOWER, WRONG, MISSING}:
        return EXIT_WORSE
    # Rows that are all new were compared with nothing.
    return EXIT_CANNOT_TELL if CANNOT_TELL in verdicts or verdicts <= {NEW} else EXIT_SAME


def _is_timed(case):
    return case is not None and case.state == cases.TIMED


def _without_times(name, a, b):
    """The finding on a case that one side has no times of, or None."""
    def found(verdict, note):
        return Finding(name, verdict, None, None, (None, None), (0, 0), None, note, [])

    if b is not None and b.state in (cases.WRONG, cases.FAILED):
        return found(WRONG, b.reason if b.state == cases.WRONG else f"failed: {b.reason}")
    if not _is_timed(b):
        was_there = a is not None and a.state != cases.SKIPPED
        return found(MISSING, f"skipped: {b.reason}" if b else "no row in B") if was_there else None
    if not _is_timed(a):
        return found(NEW, f"{a.state} in A: {a.reason}" if a else "")
    return None


def _judge_times(joined, margin):
    """The findings on cases that both sides timed."""
    p_values = [estimates.p_value(pairs.estimate) if pairs.estimate else 1.0 for pairs in joined.values()]
    differs = estimates.holm(p_values, FAMILY_ERROR)
    findings = []
    for (name, pairs), is_different in zip(joined.items(), differs):
        verdict = _verdict(pairs, is_different, margin)
        needs = launches_needed(pairs, margin, len(joined)) if verdict == CANNOT_TELL else None
        interval = estimates.interval(pairs.estimate) if pairs.estimate else None
        # What is measured anew in each launch is no news where the time did not change.
        changes = pairs.changes + (pairs.measured_changes if verdict in (SLOWER, FASTER) else [])
        findings.append(Finding(name, verdict, pairs.estimate, interval, pairs.seconds, pairs.launches, needs,
                                pairs.note, changes))
    return findings


def _verdict(pairs, is_different, margin):
    estimate = pairs.estimate
    if estimate is None or (estimate.error > 0 and min(pairs.launches) < LEAST_LAUNCHES):
        return CANNOT_TELL
    if is_different and abs(estimate.log_ratio) > margin:
        return SLOWER if estimate.log_ratio > 0 else FASTER
    low, high = estimates.interval(estimate)
    return SAME if -margin <= low and high <= margin else CANNOT_TELL


def launches_needed(pairs, margin, cases):
    """Returns how many launches of each side would tell if estimate and spread stay; None for over MOST_LAUNCHES.

    Beyond the margin that many show a difference, by the hardest of Holm's levels. Within it that many show that there
    is none; where the estimate is near the margin, as many as halve the margin.
    """
    if pairs.estimate is None or pairs.estimate.spread == 0:
        return LEAST_LAUNCHES
    distance = abs(pairs.estimate.log_ratio)
    level, reach = 0.95, max(margin - distance, margin / 2)
    if distance > margin:
        level, reach = 1 - FAMILY_ERROR / cases, distance
    found = estimates.launches_needed(pairs.estimate, level, reach, range(LEAST_LAUNCHES, MOST_LAUNCHES + 1))
    return max(found, min(pairs.launches) + 1) if found else None
