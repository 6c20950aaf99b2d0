# SPDX-License-Identifier: Apache-2.0
"""The page as data, and its tables as CSV: sections of paragraphs, tables and figures."""

import collections
import csv
import io

from baton.paper.cells import DERIVED

# Paragraphs are Markdown of three forms: `code`, **bold** and [text](address).
Text = collections.namedtuple("Text", "markdown")
# `name` is the name of its CSV, `columns` are the headings over the cells, `notes` stand below. A folded table opens at a
# click.
Table = collections.namedtuple("Table", "name title columns rows notes folded", defaults=((), False))
# `where` names the sources of the numbers, `draw` a function of figures.py, `data` is its argument, and `about` describes
# the picture.
Figure = collections.namedtuple("Figure", "name title where draw data about")
Section = collections.namedtuple("Section", "title blocks")
# What the records say, on top of the page: a sentence, what it stands on, and the title of the section with its numbers.
Finding = collections.namedtuple("Finding", "sentence detail section")
Page = collections.namedtuple("Page", "title lead sections findings", defaults=((),))

CSV_COLUMNS = ("row", "what", "column", "value", "unit", "kind", "origin", "commit", "run", "time", "note")


def sentences(*makers):
    """Yields the Text of each function that finds all its numbers. A missing cell drops its whole sentence."""
    for make in makers:
        try:
            yield Text(make())
        except KeyError:
            continue


def blocks(page, kind):
    return [block for section in page.sections for block in section.blocks if isinstance(block, kind)]


def number_of(page, title):
    """Returns the number of the section with this title, None without one."""
    return next((number for number, one in enumerate(page.sections, start=1) if one.title == title), None)


def as_csv(table):
    """Returns the name of the table's CSV and its text: one line for each cell that is not blank."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(csv_rows(table))
    return f"{table.name}.csv", text.getvalue()


def csv_rows(table):
    """Yields the lines of the CSV. A row without a label has the label of the row above."""
    label = ""
    for row in table.rows:
        label = row.label.replace("`", "") or label
        for column, cell in zip(table.columns, row.cells):
            if cell is not None:
                shared = {key: value for key, value in cell._asdict().items() if key in CSV_COLUMNS}
                yield {"row": label, "what": row.kind, "column": column, **shared}


def kinds(row):
    """Returns the kinds of the row's cells, for its colour."""
    return {cell.kind for cell in row.cells if cell} or {DERIVED}
