# SPDX-License-Identifier: Apache-2.0
"""Which row of a comparison is fastest, which rows tie with it, and of which rows the launches cannot tell.

The least of many times is least by luck too. So each other row is judged by the 95 % interval of its ratio to it: it is
slower if the interval lies above the margin, it ties if the interval lies within the margin, and else nothing is known.
One launch has no interval, and tells nothing. Simulated times have no spread: there the error of predictions decides
(fastest.py).
"""

import collections
import math

from baton import fastest
from baton.estimates import MARGIN

SLOWER, TIES, UNDECIDED = "slower", "ties", "undecided"  # how a row stands to the one with the least time
FASTEST, TIE, CANNOT_TELL = "fastest", "tie", "cannot tell"  # the verdicts on a comparison
ALL_GATHER_SCAN, LASP2 = "all_gather_scan", "lasp2"


class Ranking(collections.namedtuple("Ranking", "first tied undecided beaten judged")):
    """How the rows of a comparison stand to `first`, which has the least time: lists of rows, each the fastest first.

    `judged` is False if no other row has an interval, so that nothing can be told.
    """

    @property
    def unbeaten(self):
        """The others that may be as fast as `first`."""
        return sorted([*self.tied, *self.undecided], key=lambda row: row.median)

    @property
    def verdict(self):
        """FASTEST if `first` beats every other row, TIE if all others that it does not beat tie with it."""
        if not self.judged or self.undecided:
            return CANNOT_TELL
        return TIE if self.tied else FASTEST


def rank(comparison):
    """Returns the Ranking of a comparison with at least one competitor, or None."""
    rows = comparison.competitors
    if not rows:
        return None
    found = {SLOWER: [], TIES: [], UNDECIDED: []}
    for row in rows[1:]:
        found[relation(row, rows[0])].append(row)
    judged = comparison.is_simulated or any(row.ratio_to(rows[0]).interval for row in rows[1:])
    return Ranking(rows[0], found[TIES], found[UNDECIDED], found[SLOWER], judged)


def relation(row, other):
    """How a row stands to another one that is no slower by its median: SLOWER, TIES or UNDECIDED."""
    ratio = row.ratio_to(other)
    if row.is_simulated:
        return SLOWER if fastest.is_distinct(ratio.value) else TIES
    if not ratio.interval:
        return UNDECIDED
    low, high = map(math.log, ratio.interval)
    margin = math.log(1 + MARGIN)
    if low > margin:
        return SLOWER
    return TIES if -margin <= low and high <= margin else UNDECIDED


def is_slower(row, other):
    return relation(row, other) == SLOWER


def has_winner(ranking):
    return ranking.verdict == FASTEST


def named(comparison, *names):
    """Returns the fastest competitor of these names, or None."""
    return next((row for row in comparison.competitors if row.name.name in names), None)


def lasp2_of(comparison):
    """The fastest form of LASP-2: all-gather and local scan, by a schedule or by a library's all-gather."""
    if comparison.is_layer:
        return named(comparison, LASP2)
    return next((row for row in comparison.competitors if is_lasp2(row.name.name)), None)


def is_lasp2(name):
    return name == "mpi_allgather" or name.removeprefix("nccl_").startswith(ALL_GATHER_SCAN)
