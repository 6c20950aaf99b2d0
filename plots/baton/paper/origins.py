# SPDX-License-Identifier: Apache-2.0
"""Where the cells of a table come from, as one footnote letter a source: machine, commit, launch, topology or paper.

A row bears the letter of most of its cells. A cell of another source bears its own, so a table that mixes launches or
commits shows where. Numbers derived on the page have no letter, for they stand beside what they are made of.
"""

import collections
import string

from baton.paper.cells import BY_EXECUTOR, COUNTED, DERIVED

COUNTED_FROM = "counted from the recorded schedules"


def source(cell):
    """Returns the source of a cell in words, empty for a blank or a derived one."""
    if cell is None or cell.kind == DERIVED:
        return ""
    # A row says which executor ran it.
    place = COUNTED_FROM if cell.kind == COUNTED else cell.origin.partition(BY_EXECUTOR)[0]
    parts = (place, cell.commit and f"commit {cell.commit}",
             cell.run and f"launch {cell.run}", "" if cell.run else cell.time[:10])
    return ", ".join(part for part in parts if part)


class Letters:
    """The letters of one table's sources, in the order in which a reader meets them."""

    def __init__(self, rows):
        self.letters = {}
        for row in rows:
            for one in (self._of_row(row), *map(source, row.cells)):
                if one and one not in self.letters:
                    self.letters[one] = letter(len(self.letters))

    @staticmethod
    def _of_row(row):
        found = collections.Counter(filter(None, map(source, row.cells)))
        return max(found, key=found.get, default="")

    def of_row(self, row):
        return self.letters.get(self._of_row(row), "")

    def of_cell(self, row, cell):
        """Returns the letter of a cell whose source is not that of its row, else nothing."""
        own = source(cell)
        return "" if own == self._of_row(row) else self.letters.get(own, "")

    def notes(self):
        """Returns [(letter, source)]."""
        return [(one, text) for text, one in self.letters.items()]


def letter(number):
    """Returns a, b ... z, then aa, ab ..."""
    turn, place = divmod(number, len(string.ascii_lowercase))
    return (letter(turn - 1) if turn else "") + string.ascii_lowercase[place]


def shown_rows(rows):
    """Returns the rows that have a cell. A label of a row that is left out goes to the next row, unless that has its own."""
    shown, waiting = [], ""
    for row in rows:
        waiting = row.label or waiting
        if any(cell is not None for cell in row.cells):
            shown.append(row._replace(label=waiting))
            waiting = ""
    return shown
