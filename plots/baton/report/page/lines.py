# SPDX-License-Identifier: Apache-2.0
"""Figures of lines with logarithmic axes: times against sizes or ranks, each line with its name at its right end.

Measured lines are solid with full marks and intervals. Simulated ones are dashed, have open marks, and a ~ behind
their names.
"""

import collections

from baton import words
from baton.report.page import svg

# One line: `points` are [(x, seconds, (low, high) or None, note, mark)], x rising. A mark is "" or a class of the style.
Line = collections.namedtuple("Line", "name colour simulated points")
# `unit` writes values of x; `about` is one sentence. `left_out` are names of lines that have no room.
# `weak` is true of a chart that proves nothing.
Chart = collections.namedtuple("Chart", "title about x_title unit lines left_out weak")

MOST = 8
WIDTH, LEFT, TOP, BOTTOM = 440, 58, 12, 44
LETTERS = 17  # of a line of a label
LEAST_PLOT = 210  # height
FAR = 4  # times the greatest median, or the part of the least, where intervals are cut


def times(chart):
    """The seconds that the axis of the chart holds: medians, and intervals as far as they leave those readable."""
    points = [point for line in chart.lines[:MOST] for point in line.points]
    medians = [point[1] for point in points]
    low, high = min(medians) / FAR, max(medians) * FAR
    return medians + [min(max(end, low), high) for point in points for end in point[2] or ()]


def figure(chart, seconds):
    """Returns the figure as HTML; its axis holds all of `seconds`, so that figures side by side have the same."""
    lines = chart.lines[:MOST]
    frame = Frame(lines, seconds)
    parts = [*frame.grid(chart), *(part for line in lines for part in drawn(line, frame)), *labels(lines, frame)]
    left_out = [*chart.left_out, *(line.name for line in chart.lines[MOST:])]
    more = f" Not drawn: {words.names(left_out)}." if left_out else ""
    return (f"<figure><h4>{words.escaped(chart.title)}</h4>"
            + svg.picture(WIDTH, frame.height, parts, f"{chart.title}. {chart.about}")
            + f"<figcaption>{words.escaped(chart.about + more)}</figcaption></figure>")


class Frame:
    """Where values lie on the figure."""

    def __init__(self, lines, seconds):
        self.labels = [svg.wrapped(label(line), LETTERS) for line in lines]
        needed = sum(len(lines_of) for lines_of in self.labels) * svg.LINE + 2 * len(lines)
        self.bottom = TOP + max(LEAST_PLOT, needed)
        self.height = self.bottom + BOTTOM
        self.right = WIDTH - 14 - svg.LETTER * max(len(one) for lines_of in self.labels for one in lines_of)
        self.xs = sorted({point[0] for line in lines for point in line.points})
        self.x = svg.Log(self.xs[0], self.xs[-1], LEFT + 10, self.right - 8)
        self.y = svg.Log(min(seconds) / 1.06, max(seconds) * 1.06, self.bottom, TOP)

    def grid(self, chart):
        right = round(self.right, 1)
        for seconds in svg.log_ticks(self.y.low, self.y.high):
            y = self.y(seconds)
            yield svg.element("line", x1=LEFT, x2=right, y1=y, y2=y, class_="grid")
            yield svg.text(LEFT - 6, y + 4, words.axis_time(seconds), class_="tick end")
        for x in self.ticks(chart.unit):
            yield svg.text(self.x(x), self.bottom + 18, chart.unit(x), class_="tick middle")
        yield svg.element("line", x1=LEFT, x2=right, y1=self.bottom, y2=self.bottom, class_="axis")
        yield svg.text((LEFT + self.right) / 2, self.bottom + 36, chart.x_title, class_="tick middle")

    def ticks(self, unit):
        """The values of x whose names have room, the last one first."""
        kept, edge = [], WIDTH
        for x in reversed(self.xs):
            half = svg.LETTER * len(unit(x)) / 2
            if self.x(x) + half + 6 <= edge:
                kept.append(x)
                edge = self.x(x) - half
        return kept


def label(line):
    return f"{line.name} ~" if line.simulated else line.name


def drawn(line, frame):
    """The line with its intervals and marks."""
    places = [(frame.x(x), frame.y(seconds)) for x, seconds, *_ in line.points]
    dashes = "5 4" if line.simulated else None
    yield svg.path(places, stroke=line.colour, stroke_width=2, stroke_dasharray=dashes, class_="data")
    for (x, y), (_, _, ends, note, mark) in zip(places, line.points):
        if ends:
            yield svg.element("line", x1=x, x2=x, y1=frame.y(frame.y.inside(ends[0])),
                              y2=frame.y(frame.y.inside(ends[1])), stroke=line.colour,
                              stroke_width=1.2, class_="data")
        yield point(x, y, line.colour, note, "simulated" if line.simulated else mark)


def point(x, y, colour, note, mark):
    """A disc where something was measured; open if simulated, a ring or a cross if it does not belong to the others."""
    if mark == "oversubscribed":
        return svg.element("path", svg.title(note), stroke=colour, stroke_width=2, fill="none", class_="data",
                           d=f"M{x - 4:.1f} {y - 4:.1f} l8 8 m0 -8 l-8 8")
    if mark == "elsewhere":
        return svg.element("circle", svg.title(note), cx=x, cy=y, r=5, stroke=colour, stroke_width=2, fill="#fff")
    return svg.element("circle", svg.title(note), cx=x, cy=y, r=3.4, stroke=colour, stroke_width=1.6,
                       fill="#fff" if mark else colour)


def labels(lines, frame):
    """Names beside the right ends, moved apart, with thin leaders to their lines."""
    ends = [(frame.x(line.points[-1][0]), frame.y(line.points[-1][1])) for line in lines]
    heights = [len(of) * svg.LINE + 2 for of in frame.labels]
    middles = svg.spread([y for _, y in ends], heights, TOP - 8, frame.bottom + 6)
    for line, words_of, (x, y), middle in zip(lines, frame.labels, ends, middles):
        if x < frame.right - 20 or abs(middle - y) > 4:
            yield svg.path([(x + 4, y), (frame.right + 6, middle)], stroke=line.colour, stroke_width=0.8,
                           stroke_dasharray="1 2", class_="leader")
        first = middle - (len(words_of) - 1) * svg.LINE / 2 + 4
        for index, one in enumerate(words_of):
            yield svg.text(frame.right + 8, first + index * svg.LINE, one, fill=line.colour, class_="name")
