# SPDX-License-Identifier: Apache-2.0
"""The page at a glance: communication time, published, simulated, and predicted from two cells."""

import paper_calibration as calibration
import paper_records
from paper_cells import Row
from paper_page import Section, Table, Text
from paper_prediction import PREDICTED, errors, verdict
from paper_records import H100, PAPER_RANKS, cells
from paper_table2 import SHAPE

BEST = "hierarchical_scan"  # in no paper


def section(sources):
    return Section("At a glance", [table(sources), Text(verdict(errors(sources, None)))])


def table(sources):
    rows = []
    for title, name, fit in PREDICTED:
        rows += [Row(title, "published mean", paper_records.published_cells(
                     sources.published["zeco_table2"], PAPER_RANKS, method=title)),
                 Row(f"`{name}`", f"simulated, {H100}", cells(sources.on(H100, name=name, **SHAPE), PAPER_RANKS)),
                 Row("", f"simulated, {fit}", cells(sources.on(fit, name=name), PAPER_RANKS))]
    rows.append(Row(f"`{BEST}`", f"simulated, {H100}", cells(sources.on(H100, name=BEST, **SHAPE), PAPER_RANKS)))
    few, more = calibration.FITTED_RANKS
    return Table("summary", "Communication time of one layer by GPUs, ms; 32 heads of 128 x 128", list(map(
        str, PAPER_RANKS)), rows, [
            f"`{H100}`: links with a source for every figure, fitted to no table. `fitted-*`: fitted to the "
            f"published cells at {few} and {more} GPUs alone, so from 32 on a prediction.",
            f"`{BEST}` is in no paper: two-shot on every node, doubling across nodes."])
