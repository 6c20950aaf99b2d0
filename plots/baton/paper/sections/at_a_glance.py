# SPDX-License-Identifier: Apache-2.0
"""The page at a glance: communication time, published, simulated, and predicted from two cells."""

from baton.paper import fitting
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections.predicted_from_two_cells import PREDICTED, errors, verdict
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import H100, PAPER_RANKS, published_cells, timed_cells

BEST = "hierarchical_scan"  # in no paper


def section(sources):
    return Section("At a glance", [table(sources), Text(verdict(errors(sources, None)))])


def table(sources):
    rows = []
    for title, name, fit in PREDICTED:
        rows += [Row(title, "published", published_cells(
                     sources.published["zeco_table2"], PAPER_RANKS, method=title)),
                 Row(f"`{name}`", "simulated", timed_cells(sources.on(H100, name=name, **SHAPE), PAPER_RANKS)),
                 Row("", "simulated, fitted", timed_cells(sources.on(fit, name=name), PAPER_RANKS))]
    rows.append(Row(f"`{BEST}`", "simulated", timed_cells(sources.on(H100, name=BEST, **SHAPE), PAPER_RANKS)))
    few, more = fitting.FITTED_RANKS
    return Table(
        "summary", "Communication time of one layer by GPUs, published and simulated, ms; 32 heads of 128 x 128",
        list(map(str, PAPER_RANKS)), rows, [
            f"Simulated: on links with a source for every figure, fitted to no table. Fitted: on links fitted to the "
            f"published cells at {few} and {more} GPUs alone, so from 32 on a prediction. Published cells are means.",
            f"`{BEST}` is in no paper: two-shot on every node, doubling across nodes."])
