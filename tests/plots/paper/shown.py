# SPDX-License-Identifier: Apache-2.0
"""Simulated records and published cells that sections of the papers' page are made of, and what a section shows."""

from baton.paper.page import Table, Text
from baton.paper.published import FOLDER, load_cells
from baton.paper.sources import H100
from plots.example import layer, record


def simulated(name, ranks, milliseconds=1.0, topology=H100, **changes):
    return record(name, ranks, milliseconds, **{"executor": "simulator", "topology": topology, "messages": 9,
                                                "blocks_asked": 1, **changes})


def simulated_layer(name, milliseconds, topology=H100, **changes):
    return layer(name, milliseconds=milliseconds, **{"executor": "simulator", "topology": topology, "dtype": "bf16", **changes})


def published(*names):
    """{name of a CSV: its cells}"""
    return {name: load_cells(FOLDER / f"{name}.csv") for name in names}


def tables(section):
    return {block.name: block for block in section.blocks if isinstance(block, Table)}


def rows(table):
    """{(label, kind): texts}; a row without a label has that of the row above."""
    found, label = {}, ""
    for row in table.rows:
        label = row.label or label
        found[label, row.kind] = [cell and cell.text for cell in row.cells]
    return found


def text(section):
    return " ".join(block.markdown for block in section.blocks if isinstance(block, Text))
