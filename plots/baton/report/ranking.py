# SPDX-License-Identifier: Apache-2.0
"""Which row of a contest is fastest, and which rows the launches cannot tell from it.

The least of many medians is least by luck too. So it is called the winner only if the 95 % interval of each other
row's ratio to it lies above 1, that of the runner-up included. Among equals the two least of many medians are nearer
to one another than those of two, so a wrong winner is named in at most 5 % of all contests, however many compete
(Gutmann and Maymin, "Is the selected population the best?", Annals of Statistics 15, 1987). One launch tells nothing.
"""

import collections
import itertools

from baton.report.rows import LEVEL

NO_DIFFERENCE = 1.01  # one program under two names differs by 0.7 % on GPUs, in every launch (docs/runs.md)
MODEL_TELLS = 1.1  # simulated times that are nearer to one another than this are called equal
ALL_GATHER_SCAN, LASP2, LASP1, ZECO = "all_gather_scan", "lasp2", "lasp1", "zeco"

# `first` has the least median; `tied` are the others that are not told from it, and `beaten` those that are, both the
# fastest first. `judged` is False if the rows have one launch only, so that nothing can be told.
Ranking = collections.namedtuple("Ranking", "first tied beaten judged")


def rank(contest):
    """Returns the Ranking of a contest with at least one competitor, or None."""
    rows = contest.competitors
    if not rows:
        return None
    beaten = [row for row in rows[1:] if is_slower(row, rows[0])]
    tied = [row for row in rows[1:] if row not in beaten]
    judged = contest.is_simulated or any(_has_interval(row, rows[0]) for row in rows[1:])
    return Ranking(rows[0], tied, beaten, judged)


def is_slower(row, other):
    """True if the interval of the ratio says so and the ratio is no trifle; of simulated rows, if the model can tell."""
    ratio = row.ratio_to(other)
    if row.is_simulated:
        return ratio.value > MODEL_TELLS
    return bool(ratio.interval) and ratio.interval[0] > 1 and ratio.value > NO_DIFFERENCE


def _has_interval(row, other):
    return row.ratio_to(other).interval is not None


def has_winner(ranking):
    return ranking.judged and not ranking.tied


def named(contest, *names):
    """Returns the fastest competitor of these names, or None."""
    return next((row for row in contest.competitors if row.name.name in names), None)


def lasp2_of(contest):
    """The fastest form of LASP-2: all-gather and local scan, by a schedule or by a library's all-gather."""
    if contest.is_layer:
        return named(contest, LASP2)
    return next((row for row in contest.competitors if is_lasp2(row.name.name)), None)


def is_lasp2(name):
    return name == "mpi_allgather" or name.removeprefix("nccl_").startswith(ALL_GATHER_SCAN)


def spread(contest, names=(ZECO, LASP1, LASP2)):
    """How far the methods of these names lie apart: (found, at most), as ratios of the slower to the faster.

    Each is the largest of all pairs, and `at most` the furthest end of their intervals, held to a common level; None
    for one launch. Returns None where fewer than two of them ran.
    """
    rows = [row for row in (named(contest, name) for name in names) if row]
    pairs = list(itertools.combinations(rows, 2))
    if not pairs:
        return None
    ratios = [one.ratio_to(other, 1 - (1 - LEVEL) / len(pairs)) for one, other in pairs]
    found = max(max(ratio.value, 1 / ratio.value) for ratio in ratios)
    if not all(ratio.interval for ratio in ratios):
        return found, None
    return found, max(max(ratio.interval[1], 1 / ratio.interval[0]) for ratio in ratios)
