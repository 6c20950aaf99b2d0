# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file with style and pictures inside, which fetches nothing."""

import base64
import html
import re

from paper.page import Figure, Table, Text, kinds as kinds_of
from paper.cells import KINDS

STYLE = """
:root { --ink: #24292f; --soft: #57606a; --line: #d8dee4; --published: #8250df; --simulated: #0072b2;
  --measured: #00805e; --counted: #24292f; --derived: #57606a; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 76rem; color: var(--ink); background: #fff;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.35rem; margin: 3.5rem 0 .8rem; padding-top: .9rem; border-top: 1px solid var(--line); }
p, li { max-width: 48rem; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: #f3f4f6;
  padding: .1em .3em; border-radius: 4px; }
a { color: #0550ae; }
nav ol { columns: 2; padding-left: 1.4rem; margin: 1.2rem 0; }
nav a { text-decoration: none; }
.scroll { overflow-x: auto; margin: 1.2rem 0 .4rem; }
table { border-collapse: collapse; font-size: .84rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; font-size: .95rem; padding-bottom: .45rem; }
caption a { font-weight: 400; font-size: .8rem; margin-left: .4rem; }
th, td { padding: .28rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #eceff2; }
thead th { border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
th:first-child, td:first-child, .kind { text-align: left; }
td:first-child { white-space: normal; min-width: 11rem; }
.kind { font-size: .76rem; color: var(--soft); }
tr.first td { border-top: 1px solid #afb8c1; }
.published { color: var(--published); } .simulated { color: var(--simulated); }
.measured { color: var(--measured); } .counted { color: var(--counted); }
.derived { color: var(--derived); font-style: italic; }
.off { font-weight: 700; color: #b42318; font-style: normal; }
.key span { margin-right: 1.4rem; font-weight: 600; font-size: .9rem; }
ul.notes { font-size: .82rem; color: var(--soft); margin: .2rem 0 1.6rem; padding-left: 1.2rem; }
ul.notes li { max-width: 60rem; }
figure { margin: 1.6rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { font-size: .85rem; color: var(--soft); max-width: 48rem; }
"""

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
            f"initial-scale=1\">\n<title>{html.escape(of.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
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
