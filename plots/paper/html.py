# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file with style and pictures inside, which fetches nothing."""

import base64
import html
import pathlib
import re

from paper.cells import KINDS
from paper.page import Figure, Table, Text, kinds as kinds_of

# The first line is the licence of the file, not of the page.
STYLE = pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8").partition("\n")[2]

LEGEND = "".join(f'<span class="{kind}">{kind}</span>' for kind in KINDS)


def page(of, pictures):
    """Returns the page as HTML. `pictures` is {name of a figure: its SVG}."""
    body = [f"<h1>{inline(of.title)}</h1>", *(f"<p>{inline(text)}</p>" for text in of.lead),
            f'<p class="key">{LEGEND}</p>', contents(of)]
    for number, section in enumerate(of.sections, start=1):
        body.append(f'<h2 id="s{number}">{number}. {inline(section.title)}</h2>')
        body += [HTML[type(block)](block, pictures) for block in section.blocks]
    return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, "
            f"initial-scale=1\">\n<title>{html.escape(of.title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
            + "\n".join(body) + "\n</body>\n</html>\n")


def contents(of):
    entries = (f'<li><a href="#s{number}">{inline(section.title)}</a></li>'
               for number, section in enumerate(of.sections, start=1))
    return f"<nav><ol>{''.join(entries)}</ol></nav>"


def inline(markdown):
    """Returns HTML for `code`, **bold** and [text](address)."""
    text = html.escape(markdown, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', text)


def text_html(text, _pictures):
    return f"<p>{inline(text.markdown)}</p>"


def table_html(table, _pictures):
    link = f'<a href="{table.name}.csv">{table.name}.csv</a>'
    head = "".join(f"<th>{inline(column)}</th>" for column in table.columns)
    rows = "\n".join(row_html(row) for row in table.rows)
    notes = "".join(f"<li>{inline(note)}</li>" for note in table.notes)
    return (f'<div class="scroll"><table><caption>{inline(table.title)} {link}</caption>\n'
            f'<thead><tr><th></th><th class="kind"></th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'
            + (f'<ul class="notes">{notes}</ul>' if notes else ""))


def row_html(row):
    first = ' class="first"' if row.label else ""
    kinds = kinds_of(row)
    colour = kinds.pop() if len(kinds) == 1 else ""
    return (f'<tr{first}><td>{inline(row.label)}</td><td class="kind {colour}">{inline(row.kind)}</td>'
            + "".join(cell_html(cell) for cell in row.cells) + "</tr>")


def cell_html(cell):
    if cell is None:
        return "<td></td>"
    told = "; ".join(part for part in (f"{cell.kind}: {cell.origin}", cell.note, cell.commit and
                                       f"commit {cell.commit}", cell.time) if part)
    off = " off" if cell.off else ""
    return f'<td class="{cell.kind}{off}" title="{html.escape(told)}">{html.escape(cell.text)}</td>'


def figure_html(figure, pictures):
    caption = f"<figcaption>{inline(figure.about)}</figcaption>"
    if figure.name not in pictures:
        return f"<figure>{caption}<p>No picture “{inline(figure.title)}”: no data, or no matplotlib.</p></figure>"
    data = base64.b64encode(pictures[figure.name].encode()).decode()
    return (f'<figure><img alt="{html.escape(figure.about)}" src="data:image/svg+xml;base64,{data}">'
            f"{caption}</figure>")


HTML = {Text: text_html, Table: table_html, Figure: figure_html}
