# SPDX-License-Identifier: Apache-2.0
"""The page as data, and as Markdown and CSV: sections of paragraphs, tables and figures."""

import collections
import csv
import io

from baton.paper.cells import DERIVED
from baton.paper.origins import Letters, shown_rows

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


# --- Markdown -------------------------------------------------------------------------------------------


def markdown(page, drawn):
    """Returns the page as Markdown. `drawn` has the names of the figures that have a picture."""
    lines = [f"# {page.title}", ""]
    for finding in page.findings:
        lines += [f"- **{finding.sentence}** {finding.detail}", ""]
    lines += [line for text in page.lead for line in (text, "")]
    for number, section in enumerate(page.sections, start=1):
        lines += [f"## {number}. {section.title}", ""]
        for block in section.blocks:
            lines += [*MARKDOWN[type(block)](block, drawn), ""]
    return "\n".join(lines).rstrip() + "\n"


def text_lines(text, _drawn):
    return [text.markdown]


def table_lines(table, _drawn):
    rows = shown_rows(table.rows)
    if not rows:
        return
    yield f"**{table.title}** ([{table.name}.csv]({table.name}.csv))"
    yield ""
    yield "| | | " + " | ".join(table.columns) + " |"
    yield "| --- | --- |" + " ---: |" * len(table.columns)
    letters = Letters(rows)
    for row in rows:
        texts = (cell.text + raised(letters.of_cell(row, cell)) if cell else "" for cell in row.cells)
        yield f"| {row.label} | {row.kind}{raised(letters.of_row(row))} | " + " | ".join(texts) + " |"
    yield ""
    for note in (*table.notes, *(f"{letter}: {source}." for letter, source in letters.notes())):
        yield f"- {note}"


def raised(letter):
    return f"<sup>{letter}</sup>" if letter else ""


def figure_lines(figure, drawn):
    if figure.name in drawn:
        yield f"![{figure.about}]({figure.name}.png)"
        yield ""
    yield f"**{figure.title}.** {figure.about}"


MARKDOWN = {Text: text_lines, Table: table_lines, Figure: figure_lines}


# --- CSV ------------------------------------------------------------------------------------------------


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
