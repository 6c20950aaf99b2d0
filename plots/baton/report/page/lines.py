# SPDX-License-Identifier: Apache-2.0
"""Figures of lines with logarithmic axes: times against sizes or ranks, each line with its name at its right end.

Measured lines are solid with full marks and intervals. Simulated ones are dashed, have open marks, and a ~ behind
their names.
"""

import collections

from baton import style, words

# One line: `points` are [(x, seconds, (low, high) or None, note, mark)], x rising. A mark is "", or one of charts.py.
Line = collections.namedtuple("Line", "name colour simulated points")
# `unit` writes values of x; `about` is one sentence. `left_out` are names of lines that have no room.
# `weak` is true of a chart that proves nothing.
Chart = collections.namedtuple("Chart", "title about x_title unit lines left_out weak")

WIDTH, LEFT, TOP, BOTTOM = 440, 58, 12, 40
TEXT, LINE, LETTER = 10.5, 14, 7.4  # points: the size of text, from one line of a label to the next, a wide letter of a label
LETTERS = 17  # of a line of a label
LEAST_PLOT = 210  # height
FAR = 4  # times the greatest median, or the part of the least, where intervals are cut
DASHES = (0, (4, 3))  # of what is simulated
OVERSUBSCRIBED, ELSEWHERE = "oversubscribed", "elsewhere"  # marks: fewer cores than busy threads; another launch or commit


def times(chart):
    """The seconds that the axis of the chart holds: medians, and intervals as far as they leave those readable."""
    points = [point for line in chart.lines[:style.MOST_LINES] for point in line.points]
    medians = [point[1] for point in points]
    low, high = min(medians) / FAR, max(medians) * FAR
    return medians + [min(max(end, low), high) for point in points for end in point[2] or ()]


def draw(chart, seconds):
    """Returns the figure and what a pointer on each mark shows; its axis holds all of `seconds`, as those beside it."""
    lines = chart.lines[:style.MOST_LINES]
    labels = [style.wrapped(label(line), LETTERS) for line in lines]
    bottom = TOP + max(LEAST_PLOT, sum(LINE * (name.count("\n") + 1) + 2 for name in labels))
    right = WIDTH - 14 - LETTER * max(len(row) for name in labels for row in name.split("\n"))
    drawn, axes = style.placed_axes(WIDTH, bottom + BOTTOM, LEFT, TOP, right, bottom)
    axes.set(xscale="log", yscale="log", ylim=(min(seconds) / 1.06, max(seconds) * 1.06))
    shape(axes, chart, sorted({point[0] for line in lines for point in line.points}))
    notes = {}
    for line in lines:
        draw_line(axes, line, notes)
    style.label_lines(axes, [(*line.points[-1][:2], name, line.colour) for line, name in zip(lines, labels)], TEXT)
    return drawn, notes


def left_out(chart):
    return [*chart.left_out, *(line.name for line in chart.lines[style.MOST_LINES:])]


def label(line):
    return f"{line.name} ~" if line.simulated else line.name


def shape(axes, chart, xs):
    around = (xs[-1] / xs[0]) ** 0.04
    axes.set_xlim(xs[0] / around, xs[-1] * around)
    axes.set_xticks(ticks(axes, xs, chart.unit), [chart.unit(x) for x in ticks(axes, xs, chart.unit)])
    axes.minorticks_off()
    style.plain_log(axes.yaxis, lambda seconds, _: words.axis_time(seconds), 7)
    style.add_grid(axes, "y")
    axes.tick_params(labelsize=TEXT, length=0)
    axes.set_xlabel(chart.x_title, fontsize=TEXT)


def ticks(axes, xs, unit):
    """The values of x whose names have room, the last one first."""
    kept, edge = [], WIDTH
    for x in reversed(xs):
        place, half = axes.transData.transform((x, 1))[0] * style.POINTS_AN_INCH / axes.get_figure().dpi, LETTER * len(unit(x)) / 2
        if place + half + 6 <= edge:
            kept.append(x)
            edge = place - half
    return kept


def draw_line(axes, line, notes):
    """Draws a line with its intervals and marks, and keeps what a pointer on each mark shows."""
    xs, seconds = ([point[axis] for point in line.points] for axis in (0, 1))
    axes.plot(xs, seconds, color=line.colour, linewidth=1.8, linestyle=DASHES if line.simulated else "-")
    for x, middle, ends, note, mark in line.points:
        if ends:
            axes.vlines(x, *ends, color=line.colour, linewidth=1.2)
        name = f"point-{len(notes)}"
        notes[name] = note
        axes.plot(x, middle, color=line.colour, gid=name, zorder=3, **form(line, mark))


def form(line, mark):
    """A disc where something was measured; open if simulated, a cross or a ring if it does not belong to the others."""
    if mark == OVERSUBSCRIBED:
        return {"marker": "x", "markersize": 8, "markeredgewidth": 1.8}
    if mark == ELSEWHERE:
        return {"marker": "o", "markersize": 10, "markeredgewidth": 1.8, "markerfacecolor": "white"}
    return {"marker": "o", "markersize": 6.5, "markeredgewidth": 1.5,
            "markerfacecolor": "white" if line.simulated else line.colour}
