# SPDX-License-Identifier: Apache-2.0
"""What a section of the papers' page shows."""

from baton.paper.page import Table, Text


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
