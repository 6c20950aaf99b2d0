# SPDX-License-Identifier: Apache-2.0
"""What the page finds, made of the records: a sentence, what it stands on, and a small figure each.

A sentence says that two times differ only if their intervals do. A finding whose records are missing is left out.
"""

from baton import captions, exchanges, operators, results
from baton.paper import cells, goals
from baton.paper.cells import digits
from baton.paper.page import Figure, Finding, Line
from baton.paper.sections import disputed_volumes, scaling, winners, zeco_operators, zeco_table2
from baton.paper.sections import measured_against_predicted as prediction
from baton.paper.sources import H100, MANY_H100, PAPER_RANKS, by, having, published_cells, timed_cells, where_measured

US, MS = 1e6, 1e3


def of(sources):
    """Yields the findings that have their records."""
    for finding in (exchange, layer, published, many_ranks, disputed_volumes.finding, trust):
        found = finding(sources)
        if found is not None:
            yield found


# --- Words ------------------------------------------------------------------------------------------------


def times_as_long(one, base):
    """Says how much longer a record took than another, or that they cannot be told apart."""
    low, high = one["ci95_seconds"]
    base_low, base_high = base["ci95_seconds"]
    if low <= base_high and base_low <= high:
        return "a time that cannot be told apart"
    return f"{one['median_seconds'] / base['median_seconds']:.1f} times as long"


def listed(parts):
    """Joins words to `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def launches_of(records):
    count = max(record.get("launches", 1) for record in records)
    return f"{count} launches" if count > 1 else "one launch, so the next may differ by more than an interval"


def span(values, unit=""):
    """Returns `3` or `3 to 5`, as whole numbers."""
    shown = list(dict.fromkeys(f"{value:.0f}" for value in (min(values), max(values))))
    return " to ".join(shown) + unit


def interval(record, scale):
    low, high = record["ci95_seconds"]
    return low * scale, record["median_seconds"] * scale, high * scale


# --- An exchange on GPUs --------------------------------------------------------------------------------

RIVALS = {exchanges.LASP2: "LASP-2 by one ncclAllGather", exchanges.LASP1: "LASP-1 by ncclSend and ncclRecv"}


def exchange(sources):
    """Says how long All-Scan takes on the machine with most GPUs, beside its bound and its rivals."""
    found = [(ranks, machine, sweep) for machine, records in sources.measured.items()
             for (ranks, cadence), sweep in exchanges.sweeps(filter(exchanges.on_gpus, records)).items()
             if cadence == goals.CADENCE and sweep.at(exchanges.BASE, goals.PAPER_STATE)]
    if not found:
        return None
    ranks, machine, sweep = max(found, key=lambda one: one[:2])
    scan = sweep.at(exchanges.BASE, goals.PAPER_STATE)
    rivals = {title: record for one, title in RIVALS.items()
              if (record := sweep.at(one, goals.PAPER_STATE)) and not sweep.elsewhere(record, scan)}
    bound_of = scan["bound_seconds"]
    share = f", at {100 * bound_of / scan['median_seconds']:.0f} % of its bound" if bound_of else ""
    told = listed([f"{title} takes {times_as_long(record, scan)}" for title, record in rivals.items()]) + ". " \
        if rivals else ""
    lines = [Line(exchanges.title(one).split(",")[0], one.name, cells.MEASURED, {
        size: interval(record, US) for size in sweep.sizes()
        if (record := sweep.at(one, size)) and not sweep.elsewhere(record)})
        for one in (exchanges.BASE, *RIVALS)]
    bound = Line("bound of All-Scan", "", cells.DERIVED, {
        size: (record["bound_seconds"] * US,) * 3 for size in sweep.sizes()
        if (record := sweep.at(exchanges.BASE, size)) and record["bound_seconds"]})
    return Finding(
        f"On {ranks} × {scan['device']['gpu']} All-Scan hands on {captions.binary_size(goals.PAPER_STATE)} of state in "
        f"{digits(scan['median_seconds'] * US)} µs{share}.",
        f"{told}Measured, medians of {launches_of([scan])}.", "Exchanges between GPUs",
        Figure("finding_exchange", "", f"µs by state of a rank; measured: {machine}", "finding_lines",
               [line for line in (*lines, bound) if line.points],
               "Time of an exchange against the size of the state, with 95 % intervals, and the bound of All-Scan."))


# --- A layer on GPUs ------------------------------------------------------------------------------------

LAYERS = ("zeco", "lasp1", "lasp2")


def layer(sources):
    """Says what the exchange of each method adds to a layer, on the machine with most GPUs."""
    groups = []
    for (machine, executor, cadence), records in sources.here(
            bench="operator", dtype=zeco_operators.DTYPE, tokens=zeco_operators.TOKENS[0], **{"pass": "both"}):
        alone = [record for record in records if record.get("device") and not results.crowded(record)]
        for run in sorted({record["run"] for record in alone}):
            stood = {one["name"]: one for one in having(alone, run=run) if operators.stands_for_its_method(one)}
            if {operators.LOCAL, *LAYERS} <= set(stood):
                groups.append((stood["local"]["ranks"], executor == "peer", run, machine, executor, cadence, stood))
    if not groups:
        return None
    ranks, _, _, *where, stood = max(groups, key=lambda one: one[:3])
    added = {name: overhead(stood[name], stood[operators.LOCAL]) for name in LAYERS}
    order = sorted(LAYERS, key=lambda name: added[name][1])
    titles = operators.TITLES
    alike = [f"{titles[one]} and {titles[other]}" for one, other in zip(order, order[1:])
             if added[one][2] >= added[other][0]]
    none = [titles[name] for name in order if added[name][0] <= 0]
    doubts = f"{listed(alike)} cannot be told apart. " if alike else ""
    doubts += f"What {listed(none)} adds cannot be told from nothing. " if none else ""
    told = listed([f"{signed(added[name][1])}{'' if place else ' longer'} with {titles[name]}"
                   for place, name in enumerate(order)])
    apart = signed(added[order[-1]][1] - added[order[0]][1])
    return Finding(
        f"A whole layer on {ranks} × {stood['local']['device']['gpu']} takes {told} than without an exchange.",
        f"The methods are {apart} of a layer apart. {doubts}Forward and backward, {zeco_operators.TOKENS[0] // 1024}K tokens a GPU. Measured, medians of "
        f"{launches_of(stood.values())}.", "Layers on GPUs",
        Figure("finding_layer", "", f"% over the layer without an exchange; measured: {where_measured(*where)}",
               "finding_bars", [(titles[name], name, added[name]) for name in order],
               "What the exchange adds to the time of a layer, by method, with 95 % intervals."))


def overhead(one, local):
    """Returns (low, middle, high) of the percent by which a layer takes longer than the local one."""
    low, high = one["ci95_seconds"]
    local_low, local_high = local["ci95_seconds"]
    if one.get("baseline") == operators.LOCAL and one.get("ratio_ci95"):
        ends = one["ratio_ci95"]
    else:
        ends = low / local_high, high / local_low
    return tuple(100 * (ratio - 1) for ratio in (ends[0], one["median_seconds"] / local["median_seconds"], ends[1]))


def signed(percent):
    return f"{percent:.1f} %".replace("-", "−")


# --- Published beside simulated -------------------------------------------------------------------------


def published(sources):
    """Compares All-Scan with LASP-2's all-gather as published and as simulated, on the most GPUs of the paper."""
    rows = {}
    for title, name in ((zeco_table2.GATHER, "ring_all_gather"), (zeco_table2.SCAN, "all_scan")):
        simulated = timed_cells(sources.on(H100, name=name, **zeco_table2.SHAPE), PAPER_RANKS)
        theirs = published_cells(sources.published["zeco_table2"], PAPER_RANKS, method=title)
        for kind, row in ((cells.PUBLISHED, theirs), (cells.SIMULATED, simulated)):
            rows[name, kind] = {ranks: float(cell.value) for ranks, cell in zip(PAPER_RANKS, row) if cell}
    places = set.intersection(*map(set, rows.values()))
    if not places:
        return None
    most = max(places)
    ratio = {kind: rows["ring_all_gather", kind][most] / rows["all_scan", kind][most]
             for kind in (cells.PUBLISHED, cells.SIMULATED)}
    told = listed([f"{kind} {digits(rows['ring_all_gather', kind][most])} and {digits(rows['all_scan', kind][most])} ms"
                   for kind in ratio])
    names = {"ring_all_gather": "LASP-2", "all_scan": "All-Scan"}
    return Finding(
        f"On {most} GPUs ZeCO's paper has LASP-2's all-gather at {ratio[cells.PUBLISHED]:.1f} times All-Scan's time; the "
        f"links of such a cluster make it {ratio[cells.SIMULATED]:.1f} times in simulation.",
        f"All-gather and All-Scan: {told}; the simulated links are fitted to no table.", "Communication: ZeCO's table 2",
        Figure("finding_published", "", "ms by GPUs; hollow marks: published; lines: simulated", "finding_lines",
               [Line(names[name] if kind == cells.SIMULATED else "", name, kind, {x: (y,) * 3 for x, y in row.items()})
                for (name, kind), row in rows.items()],
               "Time of an exchange against GPUs, as published and as simulated."))


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
