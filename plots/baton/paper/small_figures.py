# SPDX-License-Identifier: Apache-2.0
"""The small figures of the findings on top of the page of the papers, each as wide as its column."""

import matplotlib.ticker

from baton import looks, style, words
from baton.paper.cells import DERIVED, PUBLISHED, SIMULATED

SIZE = (4.1, 2.3)  # inches
FONT = 8
MOST_TICKS = 6
BYTES = 2**16  # places from here on are sizes of a state


def axes_of(figure_size=SIZE):
    figure, axes = style.subplots(figure_size)
    axes.tick_params(labelsize=FONT)
    return figure, axes


def add_source(figure, where):
    """Adds what the axes are and where the numbers come from, in one line."""
    figure.axes[0].set_title(where, loc="left", fontsize=FONT)


def lines(found):
    """Draws [findings.Line] on logarithmic scales: published cells are hollow marks, and simulated ones have no marks."""
    figure, axes = axes_of()
    axes.set(xscale="log", yscale="log")
    places = sorted({x for one in found for x in one.points})
    for one in found:
        xs = sorted(one.points)
        middles = [one.points[x][1] for x in xs]
        away = [[one.points[x][1] - one.points[x][0] for x in xs], [one.points[x][2] - one.points[x][1] for x in xs]]
        axes.errorbar(xs, middles, yerr=away, color=colour_of(one), markersize=3.5, linewidth=1.3, elinewidth=0.8,
                      **form(one))
    axes.relim()
    axes.autoscale()
    shape(axes, places)
    style.label_lines(axes, [(max(one.points), one.points[max(one.points)][1], one.label, colour_of(one))
                             for one in found if one.label], FONT)
    return figure


def colour_of(one):
    return looks.look(one.name).colour if one.name else style.INK


def form(one):
    if one.kind == DERIVED:
        return {"linestyle": ":"}
    if one.kind == SIMULATED:
        return {"linestyle": "-"}
    if one.kind == PUBLISHED:
        return {"linestyle": "none", "marker": looks.look(one.name).mark, "fillstyle": "none"}
    return {"linestyle": "-", "marker": looks.look(one.name).mark}


def shape(axes, places):
    shown = places if len(places) <= MOST_TICKS else places[::-2][::-1]
    axes.set_xlim(places[0] / 1.15, places[-1] * 1.15)
    axes.set_xticks(shown, [words.binary_size(x) if x >= BYTES else str(x) for x in shown])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    style.plain_log(axes.yaxis)
    style.add_grid(axes, "y")


def bars(found):
    """Draws [(title, name, (low, middle, high))] as bars in percent, with their intervals and values."""
    figure, axes = axes_of()
    right = max(ends[2] for _, _, ends in found)
    for height, (_, name, (low, middle, high)) in enumerate(found):
        axes.barh(height, middle, 0.6, color=looks.look(name).colour)
        axes.errorbar(middle, height, xerr=[[middle - low], [high - middle]], fmt="none", capsize=3, elinewidth=1.2,
                      ecolor=style.INK)
        axes.text(max(middle, high) + 0.02 * right, height, f"{middle:.1f} %", va="center", fontsize=FONT)
    axes.set_yticks(range(len(found)), [title for title, _, _ in found], fontsize=FONT)
    axes.invert_yaxis()
    axes.set_xlim(min(0, *(ends[0] for _, _, ends in found)), 1.2 * right)
    style.add_grid(axes, "x")
    return figure


def strips(groups):
    """Draws {where: [ratio]} as one row of marks each, around a band of a fifth to either side of 1."""
    figure, axes = axes_of()
    axes.axvspan(1 / 1.2, 1.2, color=style.GREY, alpha=0.25, linewidth=0)
    axes.axvline(1, color=style.GREY, linewidth=0.8)
    for height, ratios in enumerate(groups.values()):
        # Marks of a row stand a little apart, in the order of the records.
        axes.plot(ratios, [height + 0.5 * (number % 7 - 3) / 7 for number in range(len(ratios))], "o", color=style.INK,
                  markersize=2.4, alpha=0.5, linestyle="none")
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2], ["half", "1", "twice"])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_yticks(range(len(groups)), list(groups), fontsize=FONT)
    axes.set_ylim(-0.6, len(groups) - 0.4)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure
