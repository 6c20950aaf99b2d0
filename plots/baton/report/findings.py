# SPDX-License-Identifier: Apache-2.0
"""Sentences on one comparison: who is fastest, who ties, what cannot be told, and by how much.

A row ties if its interval lies within the margin, it is slower if the interval lies above, and else nothing is known of
it (ranking.py). The first sentence may follow a colon, so it begins with no name of its own.
"""

import math

from baton import estimates, fastest, words
from baton.report import ranking
from baton.report.comparisons import SCAN
from baton.report.rows import LEVEL

MOST_LAUNCHES = 100  # that anybody would make
MOST_TIMES = 10  # where the end of an interval says something


def winner(comparison):
    """Who is fastest, and how far ahead of the next; or who ties; or what cannot be told."""
    ranks = ranking.rank(comparison)
    first, label = ranks.first, comparison.label_of
    others = ranks.unbeaten
    if not ranks.judged:
        return unjudged(comparison, ranks)
    if ranking.has_winner(ranks):
        runner_up = runner_up_of(ranks)
        return f"Fastest is {label(first)}, {words.time_of(first)}; the next, {label(runner_up)}, takes {times(runner_up, first)} as long."
    is_tie = ranks.verdict == ranking.TIE
    if len(others) == 1:
        between = (f"A tie of {label(first)}", "and") if is_tie else (f"Cannot tell {label(first)}", "from")
        return f"{between[0]}, {words.time_of(first)}, {between[1]} {label(others[0])}, which takes {times(others[0], first)} as long."
    whole = f"A tie of {len(others) + 1}" if is_tie else f"Cannot tell which of {len(others) + 1} is fastest"
    lowest = "time" if comparison.is_simulated else "median"
    return f"{whole}; {label(first)} has the lowest {lowest}, {words.time_of(first)}; {'; '.join(how_near(comparison, ranks))}."


def unjudged(comparison, ranks):
    """The least time where too few launches were made of the same rows."""
    runner_up, last = runner_up_of(ranks), comparison.competitors[-1]
    slowest = "" if last is runner_up else f"; the slowest, {comparison.label_of(last)}, {times(last, ranks.first)}"
    why = "One launch cannot tell a winner" if max(len(row.launches) for row in comparison.competitors) == 1 \
        else "Too few launches of the same rows to tell a winner"
    return (f"{why}; {comparison.label_of(ranks.first)} took least, {words.time_of(ranks.first)}, and {comparison.label_of(runner_up)} "
            f"{times(runner_up, ranks.first)} as long{slowest}.")


def times(row, other):
    """How many times as long a row takes as another one; simulated times are the same at every run."""
    ratio = row.ratio_to(other)
    return f"~{words.factor(ratio.value)} times" if row.is_simulated else words.times(ratio)


def how_near(comparison, ranks):
    """Who is within the margin of the first one, and who cannot be told from it."""
    near, unknown = [list(map(comparison.label_of, rows)) for rows in (ranks.tied, ranks.undecided)]
    verb = "is" if len(near) == 1 else "are"
    if comparison.is_simulated:
        return [f"{words.names(near)} {verb} within {words.percent(fastest.TYPICAL_ERROR, 0)} of it, the typical error of predictions"]
    parts = [f"{words.names(near)} {verb} within {words.percent(estimates.MARGIN, 0)} of it"] * bool(near)
    if not unknown:
        return parts
    ratios = [row.ratio_to(ranks.first) for row in ranks.undecided]
    launches = words.count(min(ratio.launches for ratio in ratios), "launch", "launches")
    most = [ratio.interval[1] for ratio in ratios if ratio.interval]
    is_known = len(most) == len(ratios) and max(most) < MOST_TIMES
    reach = f" (at most {words.factor(max(most), 3 if max(most) < 1.1 else None)} times as long)" if is_known else ""
    return [*parts, f"{words.names(unknown)} cannot be told from it in {launches}{reach}"]


def losers(ranks):
    """The rows that are slower than the fastest and that the sentence on the winner does not name."""
    return ranks.beaten[ranking.has_winner(ranks):] if ranks.judged else []


def slower(comparison):
    """Who loses, and by how much."""
    ranks = ranking.rank(comparison)
    others = losers(ranks)
    if not others or not comparison.is_layer and others == [ranking.lasp2_of(comparison)]:  # over_lasp2 says it
        return ""
    ratios = [row.ratio_to(ranks.first) for row in others]
    factor = words.times(ratios[0]) if len(others) == 1 else f"{words.span([ratio.value for ratio in ratios])} times"
    return f"Slower: {words.names(map(comparison.label_of, others))}, {factor} as long."


def lost(comparison):
    """Who failed in a comparison that has a fastest one."""
    names = sorted({comparison.label_of(row) for row in comparison.lost} - {comparison.label_of(row) for row in comparison.competitors})
    return f"{words.names(names)} failed and {'are' if len(names) > 1 else 'is'} not compared." if names else ""


def to_decide(comparison):
    """How many launches would separate the first two, if their times and the spread stay."""
    ranks = ranking.rank(comparison)
    if not ranks.judged or not ranks.undecided:
        return ""
    ratio = ranks.undecided[0].ratio_to(ranks.first)
    if ratio.value <= 1 + estimates.MARGIN or ratio.estimate is None:
        return ""
    needed = estimates.launches_needed(ratio.estimate, LEVEL, math.log(ratio.value / (1 + estimates.MARGIN)),
                                       range(3, MOST_LAUNCHES + 1))
    names = f"{comparison.label_of(ranks.first)} and {comparison.label_of(ranks.undecided[0])}"
    return f"About {max(needed, ratio.launches + 1)} launches in all would separate {names}, if both stay as they are." if needed else ""


def runner_up_of(ranks):
    return min([*ranks.unbeaten, *ranks.beaten], key=lambda row: row.median, default=None)


def over_lasp2(comparison):
    """How the one with the least median stands to LASP-2, or nothing if LASP-2 did not run."""
    ranks, lasp2 = ranking.rank(comparison), ranking.lasp2_of(comparison)
    named = runner_up_of(ranks) if not ranks.judged or len(ranks.unbeaten) < 2 else None  # with its ratio, by `winner`
    if lasp2 is None or (ranks.judged or comparison.is_layer) and lasp2 is named:
        return ""
    name = "LASP-2" if comparison.is_layer else f"The fastest form of LASP-2's gather here, {comparison.label_of(lasp2)},"
    if comparison.is_layer and losers(ranks) == [lasp2]:  # `slower` says it
        return ""
    if lasp2 is ranks.first:
        return "" if comparison.is_layer else f"{comparison.label_of(lasp2)} is the fastest form of LASP-2's gather here."
    return f"{name} takes {times(lasp2, ranks.first)} as long as {comparison.label_of(ranks.first)}{doubt(ranks, lasp2)}."


def doubt(ranks, row):
    """That a row of a ranking is not told from the first one, if it is not."""
    if not ranks.judged or row not in ranks.unbeaten:
        return ""
    return ": no difference that matters" if row in ranks.tied else ": the launches cannot tell them apart"


def of_two_ranks(comparison):
    """Why exchanges of two ranks hardly differ, whoever is ahead."""
    if comparison.kind != SCAN or comparison["ranks"] != 2 or len({row.name.name for row in comparison.competitors}) < 2:
        return ""
    return "Between two ranks most scans send one and the same message, so their patterns cannot differ; from three ranks on they do."


def exchanges_of(comparison):
    """Which exchange each method of a layer has, such as `zeco all_scan`."""
    scans = {row.name.name: row.name.scan for row in comparison.competitors if row.name.scan}
    return f"Their exchanges of states: {', '.join(f'{name} {scan}' for name, scan in scans.items())}." if len(scans) > 1 else ""


def on_other_executors(comparison):
    """The fastest of each executor of a comparison but the first one's: by a library's messages beside stores into memory."""
    best = {}
    for row in comparison.competitors:
        best.setdefault(row.name.executor, row)
    first, *others = best.values()
    return " ".join(f"On {row.name.executor} {row.name.name} has the lowest median, {times(row, first)} as long as "
                    f"{comparison.label_of(first)}." for row in others)
