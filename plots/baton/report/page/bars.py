# SPDX-License-Identifier: Apache-2.0
"""Figures of bars: how long one layer takes under each method, and how much of that is its local work alone."""

import collections

from matplotlib import ticker
from matplotlib.colors import to_rgb

from baton import style, words

# One bar, in seconds: the layer's time with its interval, `text` says both; its local work alone and the layer with an
# exposed exchange, which may be None.
Bar = collections.namedtuple("Bar", "name colour simulated seconds ends text local exposed note")
Chart = collections.namedtuple("Chart", "title about bars left_out weak")

FAR = 2  # times the longest bar, where intervals are cut
WIDTH, LEFT, RIGHT, ROW, HEIGHT = 440, 8, 12, 42, 13  # points
TEXT = 11
UNSPLIT = "#c8ced4"  # of a time that no row without the exchange splits


def times(chart):
    """The seconds that the axis of the chart holds: of bars, and intervals as far as they leave those readable."""
    bars = chart.bars[:style.MOST_LINES]
    longest = max(max(bar.seconds, bar.exposed or 0) for bar in bars)
    return [longest] + [min(end, FAR * longest) for bar in bars for end in bar.ends or ()]


def draw(chart, seconds):
    """Returns the figure and what a pointer on each bar shows; its axis holds all of `seconds`, as those beside it."""
    bars, longest = chart.bars[:style.MOST_LINES], max(seconds)
    bottom = 8 + ROW * len(bars)
    drawn, axes = style.placed_axes(WIDTH, bottom + 26, LEFT, 0, WIDTH - RIGHT, bottom)
    axes.set(xlim=(0, longest * 1.01), ylim=(bottom, 0))
    shape(axes, longest)
    notes = {}
    for index, bar in enumerate(bars):
        draw_bar(axes, bar, 8 + ROW * index, longest, notes)
    return drawn, notes


def left_out(chart):
    return [*chart.left_out, *(bar.name for bar in chart.bars[style.MOST_LINES:])]


def shape(axes, longest):
    unit = words.time_unit(longest)
    ticks = [tick for tick in ticker.MaxNLocator(5, steps=(1, 2, 5, 10)).tick_values(0, longest) if tick <= longest]
    axes.set_xticks(ticks, [words.in_unit(tick, unit, tick > 0) for tick in ticks])
    axes.get_xticklabels()[0].set_horizontalalignment("left")
    if ticks[-1] > 0.9 * longest:  # its middle is near the edge of the figure
        axes.get_xticklabels()[-1].set_horizontalalignment("right")
    axes.tick_params(labelsize=TEXT, length=0)
    style.add_grid(axes, "x")
    axes.spines[:].set_visible(False)
    axes.set_yticks([])


def draw_bar(axes, bar, top, longest, notes):
    """Name and time in one row of text, the bar below: the local work full, what the exchange adds lighter."""
    axes.text(0, top + 8, f"{bar.name} ~" if bar.simulated else bar.name, color=bar.colour, **{**style.LABEL, "fontsize": TEXT},
              va="center")
    axes.text(longest * 1.01, top + 8, bar.text, ha="right", va="center", fontsize=TEXT)
    middle, local = top + 18 + HEIGHT / 2, min(bar.local or bar.seconds, bar.seconds)
    outline = {"edgecolor": bar.colour, "linestyle": (0, (4, 3)) if bar.simulated else "-", "linewidth": 1}
    full, light = f"full-{len(notes)}", f"light-{len(notes)}"
    notes.update({full: bar.note, light: bar.note})
    whole = "white" if bar.simulated else bar.colour if bar.local else UNSPLIT
    axes.barh(middle, local, HEIGHT, color=whole, gid=full, **outline)
    axes.barh(middle, bar.seconds - local, HEIGHT, left=local, facecolor=(*to_rgb(bar.colour), 0.35), gid=light, **outline)
    if bar.exposed:
        exposed = f"exposed-{len(notes)}"
        notes[exposed] = "exchange exposed"
        axes.vlines(bar.exposed, middle - HEIGHT / 2 - 3, middle + HEIGHT / 2 + 3, color="black", linewidth=2, gid=exposed)
    if bar.ends:
        axes.hlines(middle, *bar.ends, color="black", linewidth=1.2)
