# SPDX-License-Identifier: Apache-2.0
"""The page as one HTML file with style and pictures inside, which fetches nothing. Its template is page.html."""

import base64
import html
import re

import markupsafe

from baton import pages
from baton.paper.cells import KINDS
from baton.paper.origins import Letters, shown_rows
from baton.paper.page import kinds, number_of


def page(shown, pictures):
    """Returns the page as HTML. `pictures` is {name of a figure: its SVG}."""
    drawn = {name: base64.b64encode(svg.encode()).decode() for name, svg in pictures.items()}
    return pages.made("paper/page.html", title=shown.title, style="paper/page.css", page=shown, pictures=drawn, kinds=KINDS,
                      number_of=number_of, letters_of=Letters)


def inline(markdown):
    """Returns HTML for `code`, **bold** and [text](address). An address is of the web or beside the page, never a script."""
    text = beside_percent(html.escape(markdown))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return markupsafe.Markup(re.sub(r"\[([^\]]+)\]\((https?://[^)\s]+|[^):\s]+)\)", r'<a href="\2">\1</a>', text))


def beside_percent(text):
    """The text with each percent sign on the line of its number."""
    return text.replace(" %", "\u00a0%")


def cell_text(cell):
    """What a cell tells a pointer: its origin, notes, commit and time."""
    commit = cell.commit and f"commit {cell.commit}"
    return "; ".join(filter(None, (f"{cell.kind}: {cell.origin}", cell.note, commit, cell.time)))


def colour(row):
    """The kind of all the row's cells, or nothing."""
    found = kinds(row)
    return found.pop() if len(found) == 1 else ""


pages.TEMPLATES.filters.update(inline=inline, beside_percent=beside_percent, cell_text=cell_text, colour=colour, shown=shown_rows)
