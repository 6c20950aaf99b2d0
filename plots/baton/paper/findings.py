# SPDX-License-Identifier: Apache-2.0
"""What the page finds, made of the records: a sentence and what it stands on.

A finding whose records are missing is left out.
"""

from baton import exchanges, fastest, operators, results, words
from baton.paper.cells import digits
from baton.paper.page import Finding
from baton.paper.sections import gpu_exchanges, scaling, zeco_operators, zeco_table2
from baton.paper.sections import measured_against_predicted as prediction
from baton.paper.sources import MANY_H100, PAPER_RANKS, by
from baton.report import choice, ranking

US, MS = 1e6, 1e3
PAPER_STATE = 2 * 2**20  # bytes


def findings_of(sources):
    """Yields the findings that have their records."""
    for finding in (exchange, layer, many_ranks, trust):
        found = finding(sources)
        if found is not None:
            yield found


# --- Words ------------------------------------------------------------------------------------------------


def span(values, unit=""):
    """Returns `3` or `3 to 5`, as whole numbers."""
    shown = list(dict.fromkeys(f"{value:.0f}" for value in (min(values), max(values))))
    return " to ".join(shown) + unit


def in_launches(row):
    """Says in how many launches a row was measured."""
    return f"Measured in {words.count(len(row.launches), 'launch', 'launches')}{', which tells no winner' * (len(row.launches) == 1)}."


# --- Measured on GPUs -----------------------------------------------------------------------------------

RIVALS = {"LASP-2 by one ncclAllGather": exchanges.LASP2, "LASP-1 by ncclSend and ncclRecv": exchanges.LASP1}
LAYERS = ("zeco", "lasp1", "lasp2")


def exchange(sources):
    """Says how long All-Scan takes on the machine with most GPUs, beside its bound and its rivals.

    Most GPUs count before most launches, since between two GPUs nearly all scans send one message.
    """
    found = [one for sessions in sources.sessions.values() for session in sessions for one in choice.exchanges(session) if one.on_gpus
             and one["cadence"] == gpu_exchanges.TIMING and one["state_bytes"] == PAPER_STATE and one.row_of(*exchanges.BASE)]
    if not found:
        return None
    comparison = max(found, key=lambda one: (one["ranks"], ranking.rank(one).judged))
    scan = comparison.row_of(*exchanges.BASE)
    share = f", at {100 * scan.bound_share:.0f} % of its bound" if scan.bound else ""
    rivals = words.names(f"{title} takes {words.times(row.ratio_to(scan))} as long" for title, one in RIVALS.items()
                         if (row := comparison.row_of(*one)))
    return Finding(
        f"On {comparison['ranks']} × {results.machine_of(comparison.record)} All-Scan hands on "
        f"{words.binary_size(PAPER_STATE)} of state in {digits(scan.median * US)} µs{share}.",
        f"{rivals}{'. ' if rivals else ''}{in_launches(scan)}", "Exchanges between GPUs")


def layer(sources):
    """Says what the exchange of each method adds to a layer, on the machine with most launches, then with most GPUs."""
    found = [one for sessions in sources.sessions.values() for session in sessions for one in choice.layers(session)
             if one.on_gpus and one.way == "both" and one.dtype == zeco_operators.DTYPE
             and one["tokens"] == zeco_operators.TOKENS[0] and all(ranking.named(one, name) for name in LAYERS)
             and one.local_of(one.best)]
    if not found:
        return None
    comparison = max(found, key=lambda one: (len(one.local_of(one.best).launches), one["ranks"], one.record["time"]))
    local = comparison.local_of(comparison.best)
    ratios = {name: ranking.named(comparison, name).ratio_to(local) for name in LAYERS}
    order = sorted(LAYERS, key=lambda name: ratios[name].value)
    added = words.names(f"{signed(100 * (ratios[name].value - 1))}{'' if place else ' longer'} with {operators.TITLES[name]}"
                        for place, name in enumerate(order))
    over = words.names(f"{operators.TITLES[name]} {words.times(ratios[name])}" for name in order)
    return Finding(
        f"A whole layer on {comparison['ranks']} × {results.machine_of(comparison.record)} takes {added} than without an exchange.",
        f"Over that layer: {over}, forward and backward, {comparison['tokens'] // 1024}K tokens a GPU. {in_launches(local)}",
        "Layers on GPUs")


def signed(percent):
    return f"{percent:.1f} %".replace("-", "−")


# --- Many ranks -----------------------------------------------------------------------------------------

IN_NO_PAPER = ("hierarchical_scan", "hierarchical_scan_chain", "two_shot")
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
    behind = words.names([f"{title} {seconds / there[best]:.3g}" for title, seconds in rivals.items() if seconds > there[best]])
    remark = ", which is in no paper," if best in IN_NO_PAPER else ""
    return Finding(
        f"On {most} simulated GPUs `{best}`{remark} is the fastest: {digits(there[best] * MS)} ms for 2 MiB of state; "
        f"{behind} times that.",
        f"{from_where(found, best)} Simulated on a machine that nobody here has.",
        "Scaling to 16,384 ranks")


def from_where(found, best):
    """Says on which ranks `best` is ahead of all others that were simulated there, the most of them first."""
    ahead = []
    for ranks in sorted(found[best], reverse=True):
        one = fastest.among({name: times[ranks] for name, times in found.items() if ranks in times})
        if one.name == best and one.runner_up and not one.tied:
            ahead.append(ranks)
        elif ahead:
            break
    if not ahead:
        return f"It is ahead of the next by less than {words.percent(fastest.TYPICAL_ERROR)}, the typical error of predictions."
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
        f"{count} rows of {words.names([where.replace(',', ' by') for where in groups])}, each machine calibrated on messages "
        "between its own ranks first. The papers' machines could not be calibrated here.", "Measured against predicted")
