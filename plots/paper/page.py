# SPDX-License-Identifier: Apache-2.0
"""The page as data, and as Markdown and CSV: sections of paragraphs, tables and figures."""

import collections
import csv

from paper.cells import DERIVED

# Paragraphs are Markdown of three forms: `code`, **bold** and [text](address).
Text = collections.namedtuple("Text", "markdown")
# `name` is that of its CSV; `columns` are the headings over the cells; `notes` stand below.
Table = collections.namedtuple("Table", "name title columns rows notes", defaults=((),))
# `where` is what the numbers stand on, `draw` a function of paper_figures.py by name, `data` its argument; `about` says
# what is seen.
Figure = collections.namedtuple("Figure", "name title where draw data about")
Section = collections.namedtuple("Section", "title blocks")
Page = collections.namedtuple("Page", "title lead sections")

CSV_COLUMNS = ("row", "what", "column", "value", "unit", "kind", "origin", "commit", "time", "note")


def told(*sentences):
    """Text of each function that finds all its numbers; a cell that is missing takes its arithmetic with it."""
    for sentence in sentences:
        try:
            yield Text(sentence())
        except KeyError:
            continue


def blocks(page, kind):
    return [block for section in page.sections for block in section.blocks if isinstance(block, kind)]


# --- Markdown -------------------------------------------------------------------------------------------


def markdown(page, drawn):
    """`drawn`: the names of the figures that there are pictures of."""
    lines = [f"# {page.title}", "", *(line for text in page.lead for line in (text, ""))]
    for number, section in enumerate(page.sections, start=1):
        lines += [f"## {number}. {section.title}", ""]
        for block in section.blocks:
            lines += [*MARKDOWN[type(block)](block, drawn), ""]
    return "\n".join(lines).rstrip() + "\n"


def text_lines(text, _drawn):
    return [text.markdown]


def table_lines(table, _drawn):
    yield f"**{table.title}** ([{table.name}.csv]({table.name}.csv))"
    yield ""
    yield "| | | " + " | ".join(table.columns) + " |"
    yield "| --- | --- |" + " ---: |" * len(table.columns)
    for row in table.rows:
        yield f"| {row.label} | {row.kind} | " + " | ".join(cell.text if cell else "" for cell in row.cells) + " |"
    if table.notes:
        yield ""
    for note in table.notes:
        yield f"- {note}"


def figure_lines(figure, drawn):
    if figure.name in drawn:
        yield f"![{figure.about}]({figure.name}.png)"
        yield ""
    yield f"**{figure.title}.** {figure.about}"


MARKDOWN = {Text: text_lines, Table: table_lines, Figure: figure_lines}


# --- CSV ------------------------------------------------------------------------------------------------


def save_csv(folder, table):
    """One line a cell that is not blank."""
    with open(folder / f"{table.name}.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv_rows(table))


def csv_rows(table):
    """A row without a label goes on with what the one above tells of."""
    label = ""
    for row in table.rows:
        label = row.label.replace("`", "") or label
        for column, cell in zip(table.columns, row.cells):
            if cell is not None:
                shared = {key: value for key, value in cell._asdict().items() if key in CSV_COLUMNS}
                yield {"row": label, "what": row.kind, "column": column, **shared}


def kinds(row):
    """The kind of the row's cells, for its colour."""
    return {cell.kind for cell in row.cells if cell} or {DERIVED}
