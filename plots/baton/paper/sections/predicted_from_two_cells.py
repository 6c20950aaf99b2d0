# SPDX-License-Identifier: Apache-2.0
"""A test of prediction: machines fitted to the published 8- and 16-GPU cells say what the other cells should be."""

from baton.paper import cells, fitting
from baton.paper.cells import FAR, Row, signed
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections.zeco_table2 import EXCHANGES, GATHER, SCAN, printed
from baton.paper.sources import PAPER_RANKS, timed_cells

FITS = {GATHER: fitting.GATHER_FIT, SCAN: fitting.SCAN_FIT}  # the machine that is fitted to a row alone


def section(sources):
    fitted = {(title, ranks): value * 1e-3 for title in EXCHANGES
              for ranks, value in cells.points(fitting.FITTED_RANKS, printed(sources, title, fitting.FITTED_RANKS)).items()}
    common = verdict(errors(sources, fitting.COMMON_FIT))
    return Section("A test of prediction", [
        Text(method(fitted)), table(sources),
        Text(f"**{verdict(errors(sources))}** With one call and one rate for both collectives: {common[0].lower()}{common[1:]}"),
        Figure("prediction", "Predicted from two cells", "published: ZeCO's table 2; simulated: the fitted topologies",
               "prediction", drawing(sources),
               "Published cells as marks, filled where the fit saw them; the simulation of the fitted "
               "machines as lines; a mark within the band is predicted to a quarter of its value.")])


def fitted_row(sources, title, topology=None):
    """Returns the cells of a row as simulated on a fitted machine, its own one if none is named."""
    return timed_cells(sources.on(topology or FITS[title], name=EXCHANGES[title]), PAPER_RANKS)


def table(sources):
    rows = []
    for title, name in EXCHANGES.items():
        published = printed(sources, title)
        rows.append(Row(title, "published", published))
        for topology, fitted_to in ((FITS[title], "fitted to it"), (fitting.COMMON_FIT, "fitted to both")):
            simulated = fitted_row(sources, title, topology)
            rows += [Row(f"`{name}`", f"simulated, {fitted_to}", simulated),
                     Row("", "simulated / published − 1", list(map(cells.difference, simulated, published)))]
    return Table("prediction", "Predicted from the cells at 8 and 16 GPUs, ms", list(map(str, PAPER_RANKS)),
                 rows, ["8 and 16 GPUs are what the fits have seen; from 32 on they are predictions, as far "
                        "as 16 times the ranks that were fitted.",
                        "Fitted topologies: `fitted-all-gather.json`, `fitted-all-scan.json`, "
                        "`fitted-both.json` beside this page, written by `plots/baton/paper/fitting.py`."])


def errors(sources, topology=None):
    """Returns {(title, ranks): relative error} of the cells that no fit has seen."""
    return {(title, ranks): float(one.value) / float(other.value) - 1 for title in EXCHANGES for ranks, one, other in zip(
        PAPER_RANKS, fitted_row(sources, title, topology), printed(sources, title))
        if one and other and ranks not in fitting.FITTED_RANKS}


def verdict(found):
    if not found:
        return "Nothing was predicted."
    (title, ranks), worst = max(found.items(), key=lambda item: abs(item[1]))
    outside = sum(abs(error) > FAR for error in found.values())
    which = f"the worst is {title} on {ranks} GPUs, {signed(100 * worst)}"
    if outside == 0:
        return f"All {len(found)} predicted cells are within {100 * FAR:.0f} %; {which}."
    return f"{outside} of the {len(found)} predicted cells off by more than {100 * FAR:.0f} %; {which}."


def method(fitted):
    blocks, (gather, scan, _) = fitting.fit(fitted)
    hop = {title: fitting.slope(fitted, title) * 1e6 for title in EXCHANGES}
    return ("The fit sees four published cells, those at 8 and 16 GPUs, and nothing else. Two cells of a "
            "collective give two numbers: what a call costs and what a hop costs. A ring all-gather makes "
            f"P-1 hops of a whole map, All-Scan P-2+K hops of a block. All-gather: {gather.call * 1e6:.0f} "
            f"us a call and {hop[GATHER]:.2f} us a hop. All-Scan: {hop[SCAN]:.2f} us a hop, "
            f"{hop[GATHER] / hop[SCAN]:.2f} times less: so K = {blocks}, and {scan.call * 1e6:.0f} us a "
            "call. The numbers go into a topology file, and the simulator runs the schedules on it at all "
            "rank counts. Every hop costs the same in this model, within a node and between nodes.")


def drawing(sources):
    """[(title, name, {ranks: published}, {ranks: simulated})]"""
    lines = [(title, name, cells.points(PAPER_RANKS, printed(sources, title)), cells.points(PAPER_RANKS, fitted_row(sources, title)))
             for title, name in EXCHANGES.items()]
    return [line for line in lines if line[2] and line[3]]
