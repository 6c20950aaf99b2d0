# SPDX-License-Identifier: Apache-2.0
"""Figures of bars: how long one layer takes under each method, and how much of that is its local work alone."""

import collections

from baton import words
from baton.report.page import svg

# One bar, in seconds: the layer's time with its interval, `told` in words; its local work alone and the layer with an
# exposed exchange, which may be None.
Bar = collections.namedtuple("Bar", "name colour simulated seconds ends told local exposed note")
Chart = collections.namedtuple("Chart", "title about bars left_out weak")

MOST = 8
FAR = 2  # times the longest bar, where intervals are cut
WIDTH, LEFT, RIGHT, ROW, HEIGHT = 440, 8, 12, 42, 13


def times(chart):
    """The seconds that the axis of the chart holds: of bars, and intervals as far as they leave those readable."""
    bars = chart.bars[:MOST]
    longest = max(max(bar.seconds, bar.exposed or 0) for bar in bars)
    return [longest] + [min(end, FAR * longest) for bar in bars for end in bar.ends or ()]


def figure(chart, seconds):
    """Returns the figure as HTML; its axis holds all of `seconds`, so that figures side by side have the same."""
    bars = chart.bars[:MOST]
    longest = max(seconds)
    scale = svg.Linear(0, longest * 1.01, LEFT, WIDTH - RIGHT)
    bottom = 8 + ROW * len(bars)
    parts = [*grid(scale, longest, bottom),
             *(part for index, bar in enumerate(bars) for part in drawn(bar, scale, 8 + ROW * index))]
    left_out = [*chart.left_out, *(bar.name for bar in chart.bars[MOST:])]
    more = f" Not drawn: {words.names(left_out)}." if left_out else ""
    return (f"<figure><h4>{words.escaped(chart.title)}</h4>"
            + svg.picture(WIDTH, bottom + 26, parts, f"{chart.title}. {chart.about}")
            + f"<figcaption>{words.escaped(chart.about + more)}</figcaption></figure>")


def grid(scale, longest, bottom):
    unit = words.time_unit(longest)
    for seconds in svg.linear_ticks(0, longest, 5):
        x = scale(seconds)
        last = x > WIDTH - 40
        yield svg.element("line", x1=x, x2=x, y1=4, y2=bottom, class_="grid")
        yield svg.text(x, bottom + 18, words.in_unit(seconds, unit, seconds > 0),
                       class_=f"tick {'end' if last else 'start' if not seconds else 'middle'}")


def drawn(bar, scale, top):
    """Name and time in one row of text, the bar below: the local work full, what the exchange adds lighter."""
    name = f"{bar.name} ~" if bar.simulated else bar.name
    yield svg.text(LEFT, top + 12, name, fill=bar.colour, class_="name halo")
    yield svg.text(WIDTH - RIGHT, top + 12, bar.told, class_="tick end halo")
    y, zero = top + 18, scale(0)
    local = min(bar.local or bar.seconds, bar.seconds)
    inside = "#fff" if bar.simulated else bar.colour
    yield svg.element("rect", svg.title(bar.note), x=zero, y=y, width=scale(local) - zero, height=HEIGHT, fill=inside,
                      stroke=bar.colour, stroke_dasharray="4 3" if bar.simulated else None)
    if bar.seconds > local:
        yield svg.element("rect", svg.title(bar.note), x=scale(local), y=y, width=scale(bar.seconds) - scale(local),
                          height=HEIGHT, fill=bar.colour, fill_opacity=0.35, stroke=bar.colour,
                          stroke_dasharray="4 3" if bar.simulated else None)
    if bar.exposed:
        x = scale(bar.exposed)
        yield svg.element("line", svg.title("exchange exposed"), x1=x, x2=x, y1=y - 3, y2=y + HEIGHT + 3, class_="exposed")
    if bar.ends:
        middle = y + HEIGHT / 2
        yield svg.element("line", x1=scale(scale.inside(bar.ends[0])),
                          x2=scale(scale.inside(bar.ends[1])), y1=middle, y2=middle, class_="whisker")
