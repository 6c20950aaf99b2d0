# SPDX-License-Identifier: Apache-2.0
"""A test of prediction: machines fitted to the published 8- and 16-GPU cells say what the other cells should be."""

from baton.paper import cells, fitting
from baton.paper.cells import FAR, Row, signed
from baton.paper.links import Links
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections.zeco_table2 import GATHER, MAP, SCAN
from baton.paper.sources import H100, PAPER_RANKS, published_cells, timed_cells

# The predictions: the paper's row, our schedule, the machine fitted to that row alone.
PREDICTED = ((GATHER, "ring_all_gather", fitting.GATHER_FIT), (SCAN, "all_scan", fitting.SCAN_FIT))
COLUMNS = PAPER_RANKS


def section(sources):
    fitted = fitted_cells(sources)
    if fitted is None:
        return Section(TITLE, [Text("The published 8- and 16-GPU cells are missing, so there is nothing to fit.")])
    blocks, fits = fitting.fit(fitted)
    own, common = errors(sources, None), errors(sources, fitting.COMMON_FIT)
    return Section(TITLE, [
        Text(method(blocks, fits, fitted)),
        table(sources),
        Text(f"**{verdict(own)}** With one call and one rate for both collectives: {lower(verdict(common))}"),
        Text(reading(blocks, fits, fitted)),
        Figure("prediction", "Predicted from two cells", "published: ZeCO's table 2; simulated: the fitted topologies",
               "prediction", drawing(sources),
               "Published cells as marks, filled where the fit saw them; the simulation of the fitted "
               "machines as lines; a mark within the band is predicted to a quarter of its value.")])


TITLE = "A test of prediction"


def fitted_cells(sources):
    found = {(row["method"], int(row["gpus"])): float(row["value"]) * 1e-3 for row in sources.published["zeco_table2"]}
    wanted = [(title, ranks) for title in (GATHER, SCAN) for ranks in fitting.FITTED_RANKS]
    return {place: found[place] for place in wanted} if all(place in found for place in wanted) else None


# --- The table ------------------------------------------------------------------------------------------


def table(sources):
    rows = [row for title, name, fit in PREDICTED for row in prediction_rows(sources, title, name, fit)]
    return Table("prediction", "Predicted from the cells at 8 and 16 GPUs, ms", [str(ranks) for ranks in COLUMNS],
                 rows, ["8 and 16 GPUs are what the fits have seen; from 32 on they are predictions, as far "
                        "as 16 times the ranks that were fitted.",
                        "Fitted topologies: `fitted-all-gather.json`, `fitted-all-scan.json`, "
                        "`fitted-both.json` beside this page, written by `plots/baton/paper/fitting.py`."])


def prediction_rows(sources, title, name, fit):
    published = published_cells(sources.published["zeco_table2"], COLUMNS, method=title)
    yield Row(title, "published", published)
    for topology, fitted_to in ((fit, "fitted to it"), (fitting.COMMON_FIT, "fitted to both")):
        simulated = timed_cells(sources.on(topology, name=name), COLUMNS)
        yield Row(f"`{name}`", f"simulated, {fitted_to}", simulated)
        yield Row("", "simulated / published − 1",
                  [cells.difference(one, other) for one, other in zip(simulated, published)])


def errors(sources, common):
    """Returns {(title, ranks): relative error} of the cells that no fit has seen."""
    found = {}
    for title, name, fit in PREDICTED:
        published = published_cells(sources.published["zeco_table2"], COLUMNS, method=title)
        simulated = timed_cells(sources.on(common or fit, name=name), COLUMNS)
        for ranks, one, other in zip(COLUMNS, simulated, published):
            if one and other and ranks not in fitting.FITTED_RANKS:
                found[title, ranks] = float(one.value) / float(other.value) - 1
    return found


def verdict(found):
    if not found:
        return "Nothing was predicted."
    (title, ranks), worst = max(found.items(), key=lambda item: abs(item[1]))
    outside = sum(abs(error) > FAR for error in found.values())
    which = f"the worst is {title} on {ranks} GPUs, {signed(100 * worst)}"
    if outside == 0:
        return f"All {len(found)} predicted cells are within {100 * FAR:.0f} %; {which}."
    return f"{outside} of the {len(found)} predicted cells off by more than {100 * FAR:.0f} %; {which}."


def lower(sentence):
    return sentence[0].lower() + sentence[1:]


# --- The words ------------------------------------------------------------------------------------------


def method(blocks, fits, fitted):
    gather, scan, _ = fits
    hop = {title: fitting.slope(fitted, title) * 1e6 for title in (GATHER, SCAN)}
    return ("The fit sees four published cells, those at 8 and 16 GPUs, and nothing else. Two cells of a "
            "collective give two numbers: what a call costs and what a hop costs. A ring all-gather makes "
            f"P-1 hops of a whole map, All-Scan P-2+K hops of a block. All-gather: {gather.call * 1e6:.0f} "
            f"us a call and {hop[GATHER]:.2f} us a hop. All-Scan: {hop[SCAN]:.2f} us a hop, "
            f"{hop[GATHER] / hop[SCAN]:.2f} times less: so K = {blocks}, and {scan.call * 1e6:.0f} us a "
            "call. The numbers go into a topology file, and the simulator runs the schedules on it at all "
            "rank counts.")


def reading(blocks, fits, fitted):
    gather, scan, common = fits
    links = Links(H100)
    with_nvlink = fitted[GATHER, 8] - 7 * MAP / links.inside
    between = 15 * MAP / (fitted[GATHER, 16] - with_nvlink)
    return (f"What can be learnt from it: with K = {blocks}, the whole number nearest to the ratio of the "
            f"hops, both collectives see nearly the same link, {gather.rate * 1e-9:.1f} and "
            f"{scan.rate * 1e-9:.1f} GB/s in fp32, and nearly the same call, {gather.call * 1e6:.0f} and "
            f"{scan.call * 1e6:.0f} us, which nothing in the fits asks for. One call and one rate for both, "
            f"{common.call * 1e6:.0f} us and {common.rate * 1e-9:.1f} GB/s, reproduce the four cells to "
            f"{100 * common.residual:.1f} %. The paper does not tell K; its own numbers say {blocks}. Every "
            "hop costs the same in this model, within a node and between nodes: with the documented NVLink "
            f"inside, the 16-GPU cell would need {between * 1e-9:.0f} GB/s between nodes, "
            f"{between / links.card:.1f} times what a card of {links.card * 1e-9:.0f} GB/s carries. So the "
            "simulated line is straight in P, as a ring and a chain on equal links are, and no better than a "
            "ruler laid through two cells; the all-gather at 32 GPUs, which lies above any line through its "
            "neighbours, is what it meets worst.")


def drawing(sources):
    """[(title, name, {ranks: published}, {ranks: simulated})]"""
    lines = []
    for title, name, fit in PREDICTED:
        published = published_cells(sources.published["zeco_table2"], COLUMNS, method=title)
        simulated = timed_cells(sources.on(fit, name=name), COLUMNS)
        lines.append((title, name, *({ranks: float(cell.value) for ranks, cell in zip(COLUMNS, row) if cell}
                               for row in (published, simulated))))
    return [line for line in lines if line[2] and line[3]]
