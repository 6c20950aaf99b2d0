# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the page of the papers, in the look of style.py."""

import matplotlib.ticker
from matplotlib.patches import Patch

import paper_page
import style
from paper_cells import PUBLISHED
from style import plt


def draw_all(page, folder):
    """Draws every figure of the page, saves it as PNG and SVG; {name: its SVG}."""
    style.use()
    pictures = {}
    for figure in paper_page.blocks(page, paper_page.Figure):
        drawn = DRAW[figure.draw](figure.data)
        style.save(drawn, folder, figure.name)
        plt.close(drawn)
        pictures[figure.name] = (folder / f"{figure.name}.svg").read_text(encoding="utf-8")
    return pictures


# --- Bars -----------------------------------------------------------------------------------------------


def bars(series):
    """Groups of bars by ranks: `series` [(label, kind, {ranks: ms})]; what was published is hatched."""
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    places = sorted({ranks for _, _, values in series for ranks in values})
    labels = list(dict.fromkeys(label for label, _, _ in series))
    width = 0.84 / len(series)
    for index, (label, kind, values) in enumerate(series):
        colour = style.COLOURS[labels.index(label)]
        heights = [values.get(ranks, 0) for ranks in places]
        xs = [place + (index - (len(series) - 1) / 2) * width for place in range(len(places))]
        axes.bar(xs, heights, width * 0.92, **look(colour, kind))
        for x, height in zip(xs, heights):
            if height:
                axes.text(x, height * 1.06, short(height), ha="center", fontsize=6.5)
    axes.set_yscale("log")
    axes.set_xticks(range(len(places)), [str(ranks) for ranks in places])
    plain_log(axes.yaxis)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("time, ms")
    style.add_grid(axes, "y")
    entries = [Patch(**look(style.COLOURS[labels.index(label)], kind), label=f"{label}, {kind}")
               for label, kind, _ in series]
    figure.legend(handles=entries, loc="outside upper left", ncols=4, frameon=False, fontsize=8)
    return figure


def look(colour, kind):
    if kind == PUBLISHED:
        return {"facecolor": "white", "edgecolor": colour, "hatch": "////", "linewidth": 1.2}
    return {"facecolor": colour, "edgecolor": colour, "linewidth": 1.2}


def short(value):
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def plain_log(axis):
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5) if few_decades(axis) else (1,), numticks=20))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def few_decades(axis):
    low, high = axis.get_view_interval()
    return high < 300 * low


DRAW = {"bars": bars}
