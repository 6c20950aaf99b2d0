# SPDX-License-Identifier: Apache-2.0
"""Sentences on measured contests: who is fastest, by how much, what cannot be told, and what the exchange costs."""

import collections
import math

from baton import captions, estimates, limits, words
from baton.report import choice, ranking
from baton.report.rows import COMPUTE_ONLY, EXPOSED, LEVEL

MOST_LAUNCHES = 100  # that anybody would make
MATTERS = 0.05  # of a layer: an exchange that costs less when it is waited for hardly matters

# The share of a layer's time that the exchange costs when it is waited for; `interval` is None for one launch.
Cost = collections.namedtuple("Cost", "row share interval")


def winner(contest):
    """Who is fastest, and how far ahead of the next; or who ties."""
    ranks = ranking.rank(contest)
    first, label = ranks.first, contest.label_of
    runner_up = runner_up_of(ranks)
    if runner_up is None:
        return f"{label(first)} alone was measured: {words.time_of(first)}."
    behind = f"{words.times(runner_up.ratio_to(first))} as long"
    if not ranks.judged:
        return f"One launch cannot tell a winner: {label(first)} took least, {words.time_of(first)}, and {label(runner_up)} {behind}."
    if ranking.has_winner(ranks):
        return f"Fastest: {label(first)}, {words.time_of(first)}; the next, {label(runner_up)}, takes {behind}."
    verdict = "A tie" if ranks.verdict == ranking.TIE else "Cannot tell"
    others = ranks.unbeaten
    if len(others) == 1:
        return (f"{verdict}: {label(first)}, {words.time_of(first)}, and {label(others[0])}, which takes "
                f"{words.times(others[0].ratio_to(first))} as long.")
    launches = "" if contest.is_simulated else f" in {words.count(len(first.launches), 'launch', 'launches')}"
    near, untold = list(map(label, ranks.tied)), list(map(label, ranks.untold))
    told = [f"{words.names(near)} {'are' if len(near) > 1 else 'is'} within {words.percent(estimates.MARGIN, 0)} of it"] * bool(near) \
        + [f"{words.names(untold)} cannot be told from it{launches}"] * bool(untold)
    if contest.is_simulated:
        told = [f"{words.names(near)} cannot be told from it"]
    of = f" of {len(others) + 1}" * (ranks.verdict == ranking.TIE)
    return f"{verdict}{of}: {label(first)} has the lowest median, {words.time_of(first)}; {'; '.join(told)}."


def losers(ranks):
    """The rows that are slower than the fastest and that the sentence on the winner does not name."""
    return ranks.beaten[ranking.has_winner(ranks):] if ranks.judged else []


def slower(contest):
    """Who loses, and by how much."""
    ranks = ranking.rank(contest)
    others = losers(ranks)
    if not others or not contest.is_layer and others == [ranking.lasp2_of(contest)]:  # over_lasp2 says it
        return ""
    ratios = [row.ratio_to(ranks.first) for row in others]
    factor = words.times(ratios[0]) if len(others) == 1 else f"{span([ratio.value for ratio in ratios])} times"
    return f"Slower: {words.names(map(contest.label_of, others))}, {factor} as long."


def lost(contest):
    """Who failed in a contest that has a fastest one."""
    names = sorted({contest.label_of(row) for row in contest.lost} - {contest.label_of(row) for row in contest.competitors})
    return f"{words.names(names)} failed and {'are' if len(names) > 1 else 'is'} not compared." if names else ""


def to_decide(contest):
    """How many launches would separate the first two of a tie, if their times and the spread stay."""
    ranks = ranking.rank(contest)
    if not ranks.judged or not ranks.untold:
        return ""
    ratio = ranks.untold[0].ratio_to(ranks.first)
    names = f"{contest.label_of(ranks.first)} and {contest.label_of(ranks.untold[0])}"
    if ratio.value <= 1 + estimates.MARGIN or ratio.estimate is None:
        return ""
    needed = estimates.launches_needed(ratio.estimate, LEVEL, math.log(ratio.value / (1 + estimates.MARGIN)), range(3, MOST_LAUNCHES + 1))
    return f"About {max(needed, ratio.launches + 1)} launches in all would separate {names}, if both stay as they are." if needed else ""


def runner_up_of(ranks):
    return min([*ranks.unbeaten, *ranks.beaten], key=lambda row: row.median, default=None)


def over_lasp2(contest):
    """How the one with the least median stands to LASP-2, or nothing if LASP-2 did not run."""
    ranks, lasp2 = ranking.rank(contest), ranking.lasp2_of(contest)
    if lasp2 is None or (ranks.judged or contest.is_layer) and lasp2 is runner_up_of(ranks):
        return ""
    name = "LASP-2" if contest.is_layer else f"The fastest form of LASP-2's gather here, {contest.label_of(lasp2)},"
    if contest.is_layer and losers(ranks) == [lasp2]:  # `slower` says it
        return ""
    if lasp2 is ranks.first:
        return "" if contest.is_layer else f"{contest.label_of(lasp2)} is the fastest form of LASP-2's gather here."
    untold = ": no difference beyond the launches' spread" if ranks.judged and lasp2 in ranks.unbeaten else ""
    return (f"{name} takes {words.times(lasp2.ratio_to(ranks.first))} as long as {contest.label_of(ranks.first)}"
            f"{untold}.")


def over_bound(contest):
    """How far the fastest row that has a bound is from it; a library's own collectives and choices have none."""
    ranks = ranking.rank(contest)
    row = next((one for one in (ranks.first, *ranks.unbeaten, *ranks.beaten) if one.bound_share is not None), None)
    if row is None:
        return ""
    if row.bound_share > 1:
        return f"{contest.label_of(row)} is as fast as the link was measured to be."
    return f"{contest.label_of(row)} reaches {words.percent(row.bound_share, 0)} of what the link allows."


def everywhere(contest, found):
    """Over all sizes, ranks and cadences of the same executors: who is never slower than another, and who always is. Nothing
    if the chosen contest itself has no verdict, since others may have other rows."""
    places = [one for one in (contest, *choice.others(found, contest)) if ranking.rank(one).judged]
    if contest not in places or len(places) < 2:
        return ""
    labels, best = {}, collections.Counter()
    behind, wins = collections.defaultdict(list), collections.defaultdict(list)
    for place in places:
        ranks = ranking.rank(place)
        for row in place.competitors:  # a label may be shorter where fewer rows are
            labels.setdefault(row.name, place.label_of(row))
        best.update(row.name for row in (ranks.first, *ranks.unbeaten))
        for row in ranks.beaten:
            behind[row.name].append(row.ratio_to(ranks.first).value)
        if ranking.has_winner(ranks) and not place.lost:
            wins[ranks.first.name].append(difference(place, contest))
    always = [labels[name] for name, places_won in wins.items() if len(places_won) == len(places)]
    level = [labels[name] for name, number in best.items() if number == len(places)]
    slower = sorted((name for name, ratios in behind.items() if len(ratios) == len(places)),
                    key=lambda name: (not ranking.is_lasp2(name.name), -min(behind[name])))[:2]
    if always:
        told = f"{where(places)}, {always[0]} is fastest."
    elif level:
        told = f"{where(places)}, {words.names(level)} {'are' if len(level) > 1 else 'is'} among the fastest."
    else:
        told = f"{where(places)}, none is always among the fastest."
    if slower:
        ratios = [ratio for name in slower for ratio in behind[name]]
        told += f" Always slower: {words.names(labels[name] for name in slower)}, {span(ratios)} times as long."
    won = [f"{labels[name]} wins at {words.names(won, 2)}" for name, won in wins.items() if not always]
    return told + (f" {'; '.join(won)}." if won else "")


def where(places):
    """All places of a comparison in words, such as `At all 6 sizes (64 KiB to 16 MiB)`."""
    sizes = sorted({one["state_bytes"] for one in places})
    if len(sizes) == len(places):
        return f"At all {len(sizes)} sizes ({captions.binary_size(sizes[0])} to {captions.binary_size(sizes[-1])})"
    axes = [word for word, values in (("sizes", sizes), ("ranks", {one["ranks"] for one in places}),
                                      ("kinds of rounds", {one["cadence"] for one in places})) if len(values) > 1]
    return f"At all {len(places)} settings" + (f" of {words.names(axes)}" if axes else "")


def span(ratios):
    """The least and the largest of ratios, such as `1.4 to 3.4`."""
    low, high = f"{min(ratios):.2g}", f"{max(ratios):.2g}"
    return low if low == high else f"{low} to {high}"


def difference(other, contest):
    """What a place has other than the chosen one, such as `128 KiB, graph`; for the chosen one itself its size."""
    size = captions.binary_size(other["state_bytes"])
    parts = [size] * (other["state_bytes"] != contest["state_bytes"]) \
        + [f"{other['ranks']} ranks"] * (other["ranks"] != contest["ranks"]) \
        + [other["cadence"]] * (other["cadence"] != contest["cadence"])
    return ", ".join(parts) or size


def of_two_ranks(contest):
    """Why exchanges of two ranks tie."""
    if contest["ranks"] > 2 or not ranking.rank(contest).unbeaten:
        return ""
    return "Between two ranks most scans send one and the same message, so they tie; from three ranks on they differ."


def near(contest):
    """How little zeco, lasp1 and lasp2 differ, in percent of a layer."""
    names = [name for name in (ranking.ZECO, ranking.LASP1, ranking.LASP2) if ranking.named(contest, name)]
    found = ranking.spread(contest)
    if found is None:
        return ""
    ratio, most = found
    told = f"The slowest of {words.names(names)} takes {words.percent(ratio - 1)} longer than the fastest"
    return told + (f", at most {words.percent(most - 1)} with 95 % confidence." if most else ", in one launch.")


def exchanges_of(contest):
    """Which exchange each method of a layer has, such as `zeco all_scan`."""
    scans = {row.name.name: row.name.scan for row in contest.competitors if row.name.scan}
    return f"Their exchanges of states: {', '.join(f'{name} {scan}' for name, scan in scans.items())}." if len(scans) > 1 else ""


def on_other_executors(contest):
    """The fastest of each executor of a contest but the first one's: by a library's messages beside stores into memory."""
    best = {}
    for row in contest.competitors:
        best.setdefault(row.name.executor, row)
    first, *others = best.values()
    return " ".join(f"On {row.name.executor} {row.name.name} has the lowest median, {words.times(row.ratio_to(first))} as long as "
                    f"{contest.label_of(first)}." for row in others)


def cost_of_exchange(contest):
    """The Cost of the first method that ran in all three modes, or None."""
    for row in contest.competitors:
        exposed = contest.beside(row, EXPOSED)
        alone = contest.beside(row, COMPUTE_ONLY) or contest.local_of(row)
        common = [launch for launch in row.launches
                  if exposed and alone and launch in exposed.launches and launch in alone.launches]
        if common:
            shares = [(exposed.launches[launch] - alone.launches[launch]) / row.launches[launch] for launch in common]
            interval = estimates.interval(estimates.paired(shares), LEVEL) if len(shares) > 1 else None
            return Cost(row, sum(shares) / len(shares), interval)
    return None


def throughput(contest):
    """Tokens a second of the fastest method in a model, the utilisation if a peak is known, and its time over dp."""
    best, record, local = contest.best, contest.best.records[-1], contest.local_of(contest.best)
    told = f"{contest.label_of(best)} makes {record['tokens'] / best.median:,.0f} tokens/s a rank"
    if limit := limits.of(record):
        told += f", {words.percent(limit.seconds / best.median)} of the peak"
    return f"{told}, and takes {words.times(best.ratio_to(local))} as long as without an exchange (dp)." if local else f"{told}."


def matters(contest):
    """Whether the exchange matters for this layer at all."""
    cost = cost_of_exchange(contest)
    if cost is None:
        local = contest.local_of(contest.best)
        return f"{contest.label_of(contest.best)} takes {words.times(contest.best.ratio_to(local))} as long as the " \
               "layer without any exchange." if local else ""
    exchange = f"Without overlap the exchange of {contest.label_of(cost.row)} would cost"
    if cost.interval is None:
        return f"{exchange} {words.percent(max(cost.share, 0))} of a layer's time, in one launch."
    low, high = (max(end, 0) for end in cost.interval)
    if high < MATTERS:
        return f"{exchange} at most {words.percent(high)} of a layer's time, so it hardly matters."
    share = f"{words.percent(low)[:-2]} to {words.percent(high)}" if words.percent(low) != words.percent(high) else words.percent(high)
    return f"{exchange} {share} of a layer's time, {'so it matters' if low > MATTERS else 'too wide to say whether it matters'}."
