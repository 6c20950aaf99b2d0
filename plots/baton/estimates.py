# SPDX-License-Identifier: Apache-2.0
"""The estimate of several launches, and what Student's t says of the ratio of two sets of them.

What launches measured is estimated by the geometric mean of their medians, with Student's interval of the mean
logarithm. harness/measure/statistics.cpp has the same for the benches' tables and records; docs/metrics/derivations.md defines it.
Other numbers here are natural logarithms of times, so a difference is the logarithm of a ratio and an effect of 5 %
weighs the same at any size.
"""

import bisect
import collections
import math
import statistics

from baton import schema

# Timers tick and times are rounded, so launches that agree exactly are no more alike than this; statistics.hpp has the same.
LEAST_SPREAD = 1e-3
# A ratio nearer to 1 than this is no difference that matters: one program under two names differs by 0.7 % on GPUs, in
# every launch (docs/runs.md).
MARGIN = schema.FIELDS["ratio"]["margin"]

# The logarithm of the ratio B / A, its standard error, and the degrees of freedom of the error; `paired` if launches
# were compared pair by pair. `spread` is the standard deviation that one pair (or one launch of each side) adds.
Estimate = collections.namedtuple("Estimate", "log_ratio error freedom paired spread")


def mean(seconds):
    """Returns the estimate of positive times, one a launch, at least one: their geometric mean."""
    seconds = list(seconds)
    if min(seconds) == max(seconds):  # simulated times, which may be none
        return seconds[0]
    return math.exp(statistics.fmean(map(math.log, seconds)))


def mean_interval(seconds, level=0.95):
    """Returns the ends of the interval of `mean`, in seconds; None for one launch."""
    if len(seconds) < 2:
        return None
    return tuple(map(exp, interval(paired([math.log(one) for one in seconds]), level)))


def exp(logarithm):
    """Returns exp, within what a float can be."""
    return math.exp(min(max(logarithm, -700), 700))


def two_sided_tail(t, freedom):
    """Returns P(|T| >= |t|)."""
    from scipy import special  # records are read without SciPy too

    return 2 * float(special.stdtr(freedom, -abs(t)))


def quantile(level, freedom):
    """Returns the t that |T| exceeds with probability 1 - `level`, such as 12.71 for 0.95 and one degree."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + level) / 2))


def paired(differences):
    """The estimate from differences of logarithms, one a pair, at least two."""
    count = len(differences)
    spread = max(statistics.stdev(differences), LEAST_SPREAD)
    return Estimate(statistics.fmean(differences), spread / math.sqrt(count), count - 1, True, spread)


def unpaired(before, after):
    """Welch's estimate from logarithms of two groups, at least two in each; the degrees of freedom are rounded down."""
    shares = [max(statistics.variance(group), LEAST_SPREAD**2) / len(group) for group in (before, after)]
    error = math.sqrt(sum(shares))
    freedom = sum(shares)**2 / sum(share**2 / (len(group) - 1) for share, group in zip(shares, (before, after)))
    spread = math.sqrt(sum(share * len(group) for share, group in zip(shares, (before, after))))
    return Estimate(statistics.fmean(after) - statistics.fmean(before), error, max(1, int(freedom)), False, spread)


def of_launches(before, after):
    """The ratio of two sets of {launch: seconds}, launch by launch if they have some in common, else as two groups.

    Returns (the logarithm of after / before, its Estimate, how many launches of each side it is made of). The estimate is
    None where a side has one launch.
    """
    common = [launch for launch in before if launch in after]
    if common:
        differences = [math.log(after[launch] / before[launch]) for launch in common]
        return statistics.fmean(differences), paired(differences) if len(common) > 1 else None, (len(common), len(common))
    groups = [[*map(math.log, side.values())] for side in (before, after)]
    estimate = unpaired(*groups) if min(map(len, groups)) > 1 else None
    return statistics.fmean(groups[1]) - statistics.fmean(groups[0]), estimate, tuple(map(len, groups))


def exact(log_ratio):
    """The estimate of two numbers that are the same at every run."""
    return Estimate(log_ratio, 0.0, math.inf, True, 0.0)


def interval(estimate, level=0.95):
    """Returns the ends of the interval of the log ratio."""
    half = estimate.error * quantile(level, estimate.freedom) if estimate.error else 0.0
    return estimate.log_ratio - half, estimate.log_ratio + half


def launches_needed(estimate, level, reach, counts):
    """Returns the least of rising `counts` of launches of each side whose interval reaches no further than `reach`, if the
    spread stays; None if none of them is enough."""
    def is_enough(count):
        freedom = (count - 1) * (1 if estimate.paired else 2)
        return estimate.spread / math.sqrt(count) * quantile(level, freedom) <= reach

    found = bisect.bisect_left(counts, True, key=is_enough)  # then more are enough too
    return counts[found] if found < len(counts) else None


def p_value(estimate):
    """Returns how probable so large a difference, up or down, is between equals."""
    if estimate.error == 0:
        return 0.0 if estimate.log_ratio else 1.0
    return two_sided_tail(estimate.log_ratio / estimate.error, estimate.freedom)


def holm(p_values, level):
    """Returns which hypotheses Holm's procedure rejects: any false one of them with probability `level` at most.

    It holds however the values depend on one another, as those of cases of the same launches do.
    """
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected
