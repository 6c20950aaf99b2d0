# SPDX-License-Identifier: Apache-2.0
"""Sentences on measured contests: who is fastest, by how much, what cannot be told, and what the exchange costs."""

import collections

from baton import captions, estimates, words
from baton.report import choice, ranking
from baton.report.rows import COMPUTE_ONLY, EXPOSED, LEVEL

MATTERS = 0.05  # of a layer: an exchange that costs less when it is waited for hardly matters

# The share of a layer's time that the exchange costs when it is waited for; `interval` is None for one launch.
Cost = collections.namedtuple("Cost", "row share interval")


def winner(contest):
    """Who is fastest, and over the runner-up by how much; or what cannot be told apart."""
    ranks = ranking.rank(contest)
    first, label = ranks.first, contest.label_of
    others = [*ranks.tied, *ranks.beaten]
    if not others:
        return f"{label(first)} alone was measured: {words.time_of(first)}."
    runner_up = runner_up_of(ranks)
    behind = f"{words.times(runner_up.ratio_to(first))} as long"
    if not ranks.judged:
        return (f"One launch tells no winner: in it {label(first)} took least, {words.time_of(first)}, "
                f"and {label(runner_up)} {behind}.")
    if ranking.has_winner(ranks):
        return f"Fastest: {label(first)}, {words.time_of(first)}; the runner-up {label(runner_up)} takes {behind}."
    nearest = f": {words.times(ranks.tied[0].ratio_to(first))} as long" if len(ranks.tied) == 1 else ""
    return (f"No single fastest: {label(first)} has the lowest median, {words.time_of(first)}, "
            f"but {words.names(map(label, ranks.tied))} cannot be told apart from it{nearest}.")


def runner_up_of(ranks):
    return min([*ranks.tied, *ranks.beaten], key=lambda row: row.median, default=None)


def over_lasp2(contest):
    """How the one with the least median stands to LASP-2, or nothing if LASP-2 did not run."""
    ranks, lasp2 = ranking.rank(contest), ranking.lasp2_of(contest)
    if lasp2 is None or (ranks.judged or contest.is_layer) and lasp2 is runner_up_of(ranks):
        return ""
    name = f"LASP-2 ({contest.label_of(lasp2)})"
    if lasp2 is ranks.first:
        return "" if contest.is_layer else "That is the exchange of LASP-2."
    untold = ", which is no difference that can be told" if ranks.judged and lasp2 in ranks.tied else ""
    return (f"{name} takes {words.times(lasp2.ratio_to(ranks.first))} as long as {contest.label_of(ranks.first)}"
            f"{untold}.")


def over_bound(contest):
    """How far the fastest row that has a bound is from it; a library's own collectives and choices have none."""
    ranks = ranking.rank(contest)
    row = next((one for one in (ranks.first, *ranks.tied, *ranks.beaten) if one.bound_share is not None), None)
    return f"{contest.label_of(row)} reaches {words.percent(row.bound_share, 0)} of what the link allows." if row else ""


def elsewhere(contest, found):
    """Where else another one wins: at other sizes, ranks and cadences of the same executors, in one sentence."""
    first = contest.best.name
    if not ranking.rank(contest).judged:
        return ""
    wins, untold, same = collections.defaultdict(list), 0, 0
    for other in choice.others(found, contest):
        ranks = ranking.rank(other)
        if not ranking.has_winner(ranks):
            untold += 1
        elif (ranks.first.name.name, ranks.first.name.executor) == (first.name, first.executor):
            same += 1
        else:
            wins[other.label_of(ranks.first)].append(difference(other, contest))
    told = [f"{name} wins at {words.names(places, 2)}" for name, places in wins.items()]
    told += [f"it wins {same} other contests"] * bool(same) + [f"{untold} other contests have no winner"] * bool(untold)
    return f"At other sizes, ranks and cadences: {'; '.join(told)}." if told else ""


def difference(other, contest):
    """What tells a contest from the chosen one, such as `128 KiB, graph`."""
    size = captions.binary_size(other["state_bytes"])
    ranks = f"{other['ranks']} ranks"
    told = [size] * (other["state_bytes"] != contest["state_bytes"]) \
        + [ranks] * (other["ranks"] != contest["ranks"]) \
        + [other["cadence"]] * (other["cadence"] != contest["cadence"])
    return ", ".join(told) or "other rounds"


def near(contest):
    """How little zeco, lasp1 and lasp2 differ, in percent of a layer."""
    names = [name for name in (ranking.ZECO, ranking.LASP1, ranking.LASP2) if ranking.named(contest, name)]
    found = ranking.spread(contest)
    if found is None:
        return ""
    ratio, most = found
    told = f"{words.names(names)} lie within {words.percent(ratio - 1)} of a layer's time"
    return told + (f", at most {words.percent(most - 1)}." if most else " in one launch.")


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
    speed = record["tokens"] / best.median
    told = f"{contest.label_of(best)} makes {speed:,.0f} tokens/s a rank"
    if record.get("peak_flops"):
        flops = record["flops_a_token"] + record["flops_a_pair"] * record["tokens"] * record["ranks"]
        told += f", {words.percent(speed * flops / record['peak_flops'])} of the peak"
    return f"{told}, and takes {words.times(best.ratio_to(local))} as long as dp." if local else f"{told}."


def matters(contest):
    """Whether the exchange matters for this layer at all."""
    cost = cost_of_exchange(contest)
    if cost is None:
        local = contest.local_of(contest.best)
        return f"{contest.label_of(contest.best)} takes {words.times(contest.best.ratio_to(local))} as long as the " \
               "layer without any exchange." if local else ""
    told = f"Without overlap the exchange of {contest.label_of(cost.row)} would cost {words.percent(cost.share)}"
    if cost.interval is None:
        return f"{told} of a layer's time, in one launch."
    low, high = cost.interval
    told += f" [{words.percent(low)[:-2]}, {words.percent(high)[:-2]}] of a layer's time: "
    if high < MATTERS:
        return f"{told}it hardly matters."
    return told + ("it matters." if low > MATTERS else "whether it matters cannot be told.")
