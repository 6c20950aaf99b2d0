# SPDX-License-Identifier: Apache-2.0
"""What the page finds, made of the records: a sentence, what it stands on, and a small figure each.

Measured times are ranked as the answer of a session ranks them (report/ranking.py). A finding whose records are missing
is left out.
"""

import collections

from baton import estimates, exchanges, operators, results, words
from baton.paper import cells
from baton.paper.cells import digits
from baton.paper.page import Figure, Finding, Line
from baton.paper.sections import gpu_exchanges, scaling, winners, zeco_operators, zeco_table2
from baton.paper.sections import measured_against_predicted as prediction
from baton.paper.sources import MANY_H100, PAPER_RANKS, by, where_measured
from baton.report import choice, ranking

US, MS = 1e6, 1e3
PAPER_STATE = 2 * 2**20  # bytes
MARGIN = words.percent(estimates.MARGIN, 0)


def of(sources):
    """Yields the findings that have their records."""
    for finding in (exchange, layer, many_ranks, trust):
        found = finding(sources)
        if found is not None:
            yield found


# --- Words ------------------------------------------------------------------------------------------------


def listed(parts):
    """Joins words to `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def span(values, unit=""):
    """Returns `3` or `3 to 5`, as whole numbers."""
    shown = list(dict.fromkeys(f"{value:.0f}" for value in (min(values), max(values))))
    return " to ".join(shown) + unit


def in_launches(row):
    """Says in how many launches a row was measured."""
    return f"Measured in {words.count(len(row.launches), 'launch', 'launches')}."


def ends(row, scale):
    """Returns (low, middle, high) of a row's time over launches; one launch has no interval."""
    low, high = row.interval or (row.median, row.median)
    return low * scale, row.median * scale, high * scale


# --- An exchange on GPUs --------------------------------------------------------------------------------

RIVALS = {exchanges.LASP2: "LASP-2 by one ncclAllGather", exchanges.LASP1: "LASP-1 by ncclSend and ncclRecv"}


def exchange(sources):
    """Says how long All-Scan takes on the machine with most GPUs, beside its bound and its rivals.

    Most GPUs count before most launches, since between two GPUs nearly all scans send one message.
    """
    found = [(machine, session, one) for machine, sessions in sources.sessions.items() for session in sessions
             for one in choice.exchanges(session) if one.on_gpus and one["cadence"] == gpu_exchanges.CADENCE
             and one["state_bytes"] == PAPER_STATE and one.row_of(*exchanges.BASE)]
    if not found:
        return None
    machine, session, contest = max(found, key=lambda one: (one[2]["ranks"], ranking.rank(one[2]).judged))
    scan = contest.row_of(*exchanges.BASE)
    share = f", at {100 * scan.bound_share:.0f} % of its bound" if scan.bound else ""
    rivals = {title: row for one, title in RIVALS.items() if (row := contest.row_of(*one))}
    sizes = [one for one in choice.exchanges(session) if choice.alike(contest, one)]
    lines = [Line(exchanges.title(one).split(",")[0], one.name, cells.MEASURED, {
        place["state_bytes"]: ends(row, US) for place in sizes if (row := place.row_of(*one))})
        for one in (exchanges.BASE, *RIVALS)]
    bound = Line("bound of All-Scan", "", cells.DERIVED, {
        place["state_bytes"]: (row.bound * US,) * 3 for place in sizes
        if (row := place.row_of(*exchanges.BASE)) and row.bound})
    return Finding(
        f"On {contest['ranks']} × {results.machine_of(contest.record)} All-Scan hands on "
        f"{words.binary_size(PAPER_STATE)} of state in {digits(scan.median * US)} µs{share}.",
        f"{beside(scan, rivals)}{in_launches(scan)}", "Exchanges between GPUs",
        Figure("finding_exchange", "", f"µs by state of a rank; measured: {machine}", "finding_lines",
               [line for line in (*lines, bound) if line.points],
               "Time of an exchange against the size of the state, with 95 % intervals, and the bound of All-Scan."))


def beside(scan, rivals):
    """Says how many times as long as a row each of {title: row} takes, if the launches tell a difference that matters."""
    if not rivals:
        return ""
    ratios = {title: row.ratio_to(scan) for title, row in rivals.items()}
    if not all(ratio.interval for ratio in ratios.values()):
        told = listed([f"{title} took {words.times(ratio)} as long" for title, ratio in ratios.items()])
        return f"In one launch, which tells no winner, {told}. "
    told = {ranking.UNDECIDED: "a time that cannot be told apart", ranking.TIES: f"as long within {MARGIN}"}
    return listed([f"{title} takes {told.get(ranking.relation(row, scan)) or f'{words.times(ratios[title])} as long'}"
                   for title, row in rivals.items()]) + ". "


# --- A layer on GPUs ------------------------------------------------------------------------------------

LAYERS = ("zeco", "lasp1", "lasp2")


def layer(sources):
    """Says what the exchange of each method adds to a layer, on the machine with most launches, then with most GPUs."""
    found = [(machine, one) for machine, sessions in sources.sessions.items() for session in sessions
             for one in choice.layers(session) if one.on_gpus and one.way == "both"
             and one.dtype == zeco_operators.DTYPE and one["tokens"] == zeco_operators.TOKENS[0]
             and all(ranking.named(one, name) for name in LAYERS) and one.local_of(one.best)]
    if not found:
        return None
    machine, contest = max(found, key=lambda one: (
        len(one[1].local_of(one[1].best).launches), one[1]["ranks"], one[1].record["time"]))
    rows = {name: ranking.named(contest, name) for name in LAYERS}
    local = contest.local_of(contest.best)
    added = {name: overhead(row, local) for name, row in rows.items()}
    order = sorted(LAYERS, key=lambda name: added[name][1])
    told = listed([f"{signed(added[name][1])}{'' if place else ' longer'} with {operators.TITLES[name]}"
                   for place, name in enumerate(order)])
    return Finding(
        f"A whole layer on {contest['ranks']} × {results.machine_of(contest.record)} takes {told} than without an exchange.",
        f"{apart(contest, local, rows, order)}Forward and backward, {contest['tokens'] // 1024}K tokens a GPU. "
        f"{in_launches(local)}", "Layers on GPUs",
        Figure("finding_layer", "", "% over the layer without an exchange; measured: "
               f"{where_measured(machine, local.name.executor, contest['cadence'])}",
               "finding_bars", [(operators.TITLES[name], name, added[name]) for name in order],
               "What the exchange adds to the time of a layer, by method, with 95 % intervals."))


def overhead(row, local):
    """Returns (low, middle, high) of the percent by which a layer takes longer than the local one."""
    ratio = row.ratio_to(local)
    low, high = ratio.interval or (ratio.value, ratio.value)
    return tuple(100 * (value - 1) for value in (low, ratio.value, high))


def apart(contest, local, rows, order):
    """Says which of {name: row} the launches tell apart, and which from the layer without an exchange."""
    if not ranking.rank(contest).judged:
        return "One launch tells no winner. "
    titles = operators.TITLES
    pairs, added = collections.defaultdict(list), collections.defaultdict(list)
    for one, other in zip(order, order[1:]):
        pairs[ranking.relation(rows[other], rows[one])].append(f"{titles[one]} and {titles[other]}")
    for name in order:
        added[ranking.relation(rows[name], local)].append(titles[name])
    told = [*(f"{alike} differ by less than {MARGIN}. " for alike in pairs[ranking.TIES])]
    if undecided := pairs[ranking.UNDECIDED]:
        told += [f"{', nor can '.join([f'{undecided[0]} cannot be told apart', *undecided[1:]])}. "]
    told += [f"{name} adds less than {MARGIN}. " for name in added[ranking.TIES]]
    told += [f"Whether {name} adds more than {MARGIN} cannot be told. " for name in added[ranking.UNDECIDED]]
    return "".join(told)


def signed(percent):
    return f"{percent:.1f} %".replace("-", "−")


# --- Many ranks -----------------------------------------------------------------------------------------

IN_NO_PAPER = ("hierarchical_scan", "hierarchical_scan_chain", "two_shot")
DRAWN = ("two_shot", "hierarchical_scan", "all_scan", "ring_scan", "all_gather_scan")
AGAINST = {"all_scan": "All-Scan", "ring_scan": "LASP-1's chain", "all_gather_scan": "LASP-2's gather"}


def many_ranks(sources):
    """Names the exchange that is the fastest on the most GPUs of the papers, and from where on it is."""
    found = {name: {ranks: record["median_seconds"] for ranks, record in by("ranks", sources.on(
        MANY_H100, name=name, **zeco_table2.SHAPE)).items() if results.why_no_time(record) is None}
        for name in scaling.NAMES if name not in scaling.ALIKE}
    most = PAPER_RANKS[-1]
    there = {name: times[most] for name, times in found.items() if most in times}
    rivals = {title: there[name] for name, title in AGAINST.items() if name in there}
    if len(there) < 2 or not rivals:
        return None
    best = min(there, key=there.get)
    told = listed([f"{title} {seconds / there[best]:.3g}" for title, seconds in rivals.items() if seconds > there[best]])
    remark = ", which is in no paper," if best in IN_NO_PAPER else ""
    return Finding(
        f"On {most} simulated GPUs `{best}`{remark} is the fastest: {digits(there[best] * MS)} ms for 2 MiB of state; "
        f"{told} times that.",
        f"{from_where(found, best)} Simulated on a machine that nobody here has.",
        "Scaling to 16,384 ranks",
        Figure("finding_ranks", "", f"ms by ranks; simulated: {MANY_H100}", "finding_lines",
               [Line(name, name, cells.SIMULATED, {ranks: (seconds * MS,) * 3 for ranks, seconds in found[name].items()})
                for name in DRAWN if found.get(name)], "Time of an exchange against ranks, simulated."))


def from_where(found, best):
    """Says on which ranks `best` is ahead of all others that were simulated there, the most of them first."""
    ahead = []
    for ranks in sorted(found[best], reverse=True):
        others = [times[ranks] for name, times in found.items() if name != best and ranks in times]
        if others and winners.TIE * found[best][ranks] < min(others):
            ahead.append(ranks)
        elif ahead:
            break
    if not ahead:
        return "It is ahead of the next by less than 1 %."
    where = f"from {ahead[-1]:,} to {ahead[0]:,} ranks" if len(ahead) > 1 else f"on {ahead[0]:,} ranks alone"
    return f"It is ahead of all others {where}."


# --- How far to trust it --------------------------------------------------------------------------------


def trust(sources):
    """Says how far predictions were from what was measured, on every machine that was calibrated first."""
    groups = {}
    for machine, records in sources.measured.items():
        for record in prediction.predicted(records):
            groups.setdefault(f"{machine}, {record['executor']}", []).append(record)
    if not groups:
        return None
    errors = {where: prediction.errors(records) for where, records in groups.items()}
    count = sum(map(len, groups.values()))
    return Finding(
        f"Simulated times are typically {span([100 * one.typical for one in errors.values()], ' %')} off what was then "
        f"measured, and at worst {span([100 * one.worst for one in errors.values()], ' %')}.",
        f"{count} rows of {listed([where.replace(',', ' by') for where in groups])}, each machine calibrated on messages "
        "between its own ranks first. The papers' machines could not be calibrated here.", "Measured against predicted",
        Figure("finding_trust", "", "predicted over measured time", "finding_strips",
               {where: [one["predicted_seconds"] / one["median_seconds"] for one in records]
                for where, records in groups.items()},
               "Predicted over measured times of every machine; the band is a fifth to either side."))
