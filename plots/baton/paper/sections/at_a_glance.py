# SPDX-License-Identifier: Apache-2.0
"""The page at a glance: communication time, published, simulated, and predicted from two cells."""

from baton.paper import fitting
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections import predicted_from_two_cells as prediction
from baton.paper.sections import zeco_table2
from baton.paper.sources import PAPER_RANKS

BEST = "hierarchical_scan"  # in no paper


def section(sources):
    rows = []
    for title, name in zeco_table2.EXCHANGES.items():
        rows += [Row(title, "published", zeco_table2.printed(sources, title)),
                 Row(f"`{name}`", "simulated", zeco_table2.simulated(sources, name)),
                 Row("", "simulated, fitted", prediction.fitted_row(sources, title))]
    rows.append(Row(f"`{BEST}`", "simulated", zeco_table2.simulated(sources, BEST)))
    few, more = fitting.FITTED_RANKS
    return Section("At a glance", [Table(
        "summary", "Communication time of one layer by GPUs, published and simulated, ms; 32 heads of 128 x 128",
        list(map(str, PAPER_RANKS)), rows, [
            f"Simulated: on links with a source for every figure, fitted to no table. Fitted: on links fitted to the "
            f"published cells at {few} and {more} GPUs alone, so from 32 on a prediction. Published cells are means.",
            f"`{BEST}` is in no paper: two-shot on every node, doubling across nodes."]),
        Text(prediction.verdict(prediction.errors(sources)))])
