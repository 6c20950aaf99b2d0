# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file with style and pictures inside, which fetches nothing."""

import base64
import html
import pathlib
import re

from baton.paper.cells import KINDS
from baton.paper.origins import Letters, shown_rows
from baton.paper.page import Figure, Table, Text, number_of
from baton.paper.page import kinds as kinds_of

# The first line is the licence of the file, not of the page.
STYLE = pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8").partition("\n")[2]

LEGEND = "".join(f'<span class="{kind}">{kind}</span>' for kind in KINDS)


def page(of, pictures):
    """Returns the page as HTML. `pictures` is {name of a figure: its SVG}."""
    body = [f"<h1>{inline(of.title)}</h1>", findings(of, pictures), *(f"<p>{inline(text)}</p>" for text in of.lead[1:]),
            contents(of)]
    for number, section in enumerate(of.sections, start=1):
        body.append(f'<h2 id="s{number}">{number}. {inline(section.title)}</h2>')
        body += [HTML[type(block)](block, pictures) for block in section.blocks]
    return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, "
            f"initial-scale=1\">\n<title>{html.escape(of.title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
            + "\n".join(body) + "\n</body>\n</html>\n")


def findings(of, pictures):
    """Returns the findings and how to read the page, side by side as far as there is room."""
    key = (f'<section class="finding"><p class="key">{LEGEND}</p>{"".join(f"<p>{inline(text)}</p>" for text in of.lead[:1])}'
           "</section>")
    return f'<div class="findings">{"".join(finding_html(of, one, pictures) for one in of.findings)}{key}</div>'


def finding_html(of, one, pictures):
    number = number_of(of, one.section)
    more = f' <a href="#s{number}">section {number}</a>' if number else ""
    return (f'<section class="finding"><p><strong>{inline(one.sentence)}</strong></p>{picture(one.figure, pictures)}'
            f'<p class="detail">{inline(one.detail)}{more}</p></section>')


def contents(of):
    entries = (f'<li><a href="#s{number}">{inline(section.title)}</a></li>'
               for number, section in enumerate(of.sections, start=1))
    return f"<nav><ol>{''.join(entries)}</ol></nav>"


def inline(markdown):
    """Returns HTML for `code`, **bold** and [text](address)."""
    text = html.escape(markdown, quote=False).replace(" %", "\u00a0%")
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', text)


def text_html(text, _pictures):
    return f"<p>{inline(text.markdown)}</p>"


def table_html(table, _pictures):
    rows = shown_rows(table.rows)
    if not rows:
        return ""
    letters = Letters(rows)
    head = "".join(f"<th>{inline(column)}</th>" for column in table.columns)
    lines = "\n".join(row_html(row, letters) for row in rows)
    notes = "".join(f"<li>{inline(note)}</li>" for note in table.notes)
    title = f'{inline(table.title)} <a href="{table.name}.csv">{table.name}.csv</a>'
    text = (f'<div class="scroll"><table>\n<thead><tr><th></th><th class="kind"></th>{head}</tr></thead>\n<tbody>\n{lines}\n'
            "</tbody></table></div>"
            + (f'<ul class="notes">{notes}</ul>' if notes else "") + sources_html(letters))
    return (f"<details><summary>{title}</summary>{text}</details>" if table.folded
            else f'<p class="title">{title}</p>{text}')


def sources_html(letters):
    """Returns the footnotes of a table's letters."""
    told = "; ".join(f"<sup>{letter}</sup> {html.escape(source)}" for letter, source in letters.notes())
    return f'<p class="sources">{told}</p>' if told else ""


def row_html(row, letters):
    first = ' class="first"' if row.label else ""
    kinds = kinds_of(row)
    colour = kinds.pop() if len(kinds) == 1 else ""
    return (f'<tr{first}><td>{inline(row.label)}</td><td class="kind {colour}">{inline(row.kind)}'
            f"{raised(letters.of_row(row))}</td>"
            + "".join(cell_html(cell, letters.of_cell(row, cell)) for cell in row.cells) + "</tr>")


def cell_html(cell, letter):
    if cell is None:
        return "<td></td>"
    told = "; ".join(part for part in (f"{cell.kind}: {cell.origin}", cell.note, cell.commit and
                                       f"commit {cell.commit}", cell.time) if part)
    off = " off" if cell.off else ""
    return f'<td class="{cell.kind}{off}" title="{html.escape(told)}">{cell_text(cell.text, letter)}</td>'


def cell_text(text, letter):
    """Returns HTML with an interval on a line of its own, and each percent sign beside its number."""
    middle, bracket, interval = html.escape(text).replace(" %", "\u00a0%").partition(" [")
    return middle + raised(letter) + (f" <small>[{interval}</small>" if bracket else "")


def raised(letter):
    return f"<sup>{letter}</sup>" if letter else ""


def figure_html(figure, pictures):
    return f"<figure>{picture(figure, pictures)}<figcaption>{inline(figure.about)}</figcaption></figure>"


def picture(figure, pictures):
    """Returns the figure's image, or a word where there is none."""
    if figure.name not in pictures:
        return f"<p>No picture “{inline(figure.title)}”: no data, or no matplotlib.</p>"
    data = base64.b64encode(pictures[figure.name].encode()).decode()
    return f'<img alt="{html.escape(figure.about)}" src="data:image/svg+xml;base64,{data}">'


HTML = {Text: text_html, Table: table_html, Figure: figure_html}
