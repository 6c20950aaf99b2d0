# SPDX-License-Identifier: Apache-2.0
"""Bars of the page of the papers: published times are hatched, simulated ones are full."""

from matplotlib.patches import Patch

from baton import looks, style
from baton.paper.cells import PUBLISHED


def bars(series):
    """Draws groups of bars by ranks. `series` is [(label, name, kind, {ranks: ms})]."""
    figure, axes = style.subplots((9, 4))
    group(axes, series, places_of(series))
    entries = [Patch(**look(name, kind), label=f"{label}, {kind}") for label, name, kind, _ in series]
    style.legend_below(axes, entries, ncols=4, fontsize=8)
    return figure


def operator_bars(series):
    """Draws one pair of axes a kind on a common scale."""
    kinds = list(dict.fromkeys(kind for _, _, kind, _ in series))
    figure, rows = style.subplots((9, 6.8), len(kinds), sharey=True, squeeze=False)
    for axes, kind in zip(rows[:, 0], kinds):
        own = [one for one in series if one[2] == kind]
        group(axes, own, places_of(series))
        axes.legend(handles=[Patch(**look(name, kind), label=label) for label, name, _, _ in own], ncols=2,
                    frameon=False, fontsize=8, loc="upper left", title=kind, alignment="left",
                    title_fontproperties={"weight": "bold", "size": 9})
    for axes in rows[:-1, 0]:
        axes.set_xlabel("")
    return figure


def places_of(series):
    return sorted({ranks for _, _, _, times in series for ranks in times})


def group(axes, series, places):
    """Draws the bars with their values on end, since neighbours of one height would touch."""
    width = 0.84 / len(series)
    for index, (_, name, kind, times) in enumerate(series):
        shown = [(place, times[ranks]) for place, ranks in enumerate(places) if ranks in times]
        xs = [place + (index - (len(series) - 1) / 2) * width for place, _ in shown]
        axes.bar(xs, [height for _, height in shown], width * 0.92, **look(name, kind))
        for x, (_, height) in zip(xs, shown):
            axes.annotate(short(height), (x, height), xytext=(0, 3), textcoords="offset points", ha="center", va="bottom",
                          rotation=90, fontsize=7)
    axes.set_yscale("log")
    axes.set_xlim(-0.55, len(places) - 0.45)
    axes.set_xticks(range(len(places)), [str(ranks) for ranks in places])
    axes.margins(y=0.2)
    style.plain_log(axes.yaxis)
    axes.set_xlabel("GPUs")
    axes.set_ylabel("time, ms")
    style.add_grid(axes, "y")
    axes.tick_params(axis="x", length=0)


def look(name, kind):
    colour = looks.look(name).colour
    if kind == PUBLISHED:
        return {"facecolor": "white", "edgecolor": colour, "hatch": "////", "linewidth": 1.2}
    return {"facecolor": colour, "edgecolor": colour, "linewidth": 1.2}


def short(value):
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
