# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the page of the papers, in the style of style.py: lines."""

import functools

import matplotlib.ticker

from baton import looks, style
from baton.figures import sizes
from baton.paper import bars, small_figures, winners_map
from baton.paper import page as pages
from baton.paper.cells import FAR, PUBLISHED


def draw_all(page, folder):
    """Draws every figure of the page, saves it as PNG and SVG, and returns {name: its SVG}."""
    pictures = {}
    for figure in filter(has_data, pages.figures(page)):
        drawn = DRAW[figure.draw](figure.data)
        if figure.title:
            style.add_titles(drawn, drawn.axes[0], figure.title, figure.where)
        else:
            small_figures.add_source(drawn, figure.where)
        style.save(drawn, folder, figure.name)
        pictures[figure.name] = (folder / f"{figure.name}.svg").read_text(encoding="utf-8")
    return pictures


def has_data(figure):
    return bool(figure.data)


LINE = {"markersize": 4.5, "linewidth": 1.6}


# --- Axes -----------------------------------------------------------------------------------------------


def log_axes(figure_size, xs):
    """Returns a figure with two logarithmic scales. The ticks of x are its values."""
    figure, axes = style.subplots(figure_size)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(xs), [short_count(x) for x in sorted(xs)])
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    style.add_grid(axes, "y")
    return figure, axes


def short_count(count):
    return f"{count // 1024}K" if count >= 1024 else str(count)


def finish(axes, x_label, y_label):
    style.plain_log(axes.yaxis)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


# --- Figures --------------------------------------------------------------------------------------------


def prediction(lines):
    """[(title, name, {ranks: published}, {ranks: simulated})]; the first two ranks are those that were fitted."""
    ranks = sorted({place for _, _, published, _ in lines for place in published})
    figure, axes = log_axes((8, 4.4), ranks)
    ends = []
    for title, name, published, simulated in lines:
        colour = looks.look(name).colour
        places = sorted(simulated)
        times = [simulated[place] for place in places]
        # The published times from which the simulation differs by at most FAR.
        axes.fill_between(places, [time / (1 + FAR) for time in times], [time / (1 - FAR) for time in times],
                          color=colour, alpha=0.12, linewidth=0)
        axes.plot(places, times, color=colour, linewidth=1.8)
        for place, time in published.items():
            axes.plot(place, time, "o", markersize=7, markeredgecolor=colour, markeredgewidth=1.6,
                      color=colour if place in ranks[:2] else "white")
        ends.append((places[-1], times[-1], title, colour))
    finish(axes, "GPUs", "time, ms")
    style.label_lines(axes, ends)
    return figure


def scaling(lines):
    """[(name, {ranks: ms})]"""
    figure, axes = log_axes((9, 5), {ranks for _, times in lines for ranks in times})
    ends = []
    for name, times in lines[:style.MOST_LINES]:
        colour, marker = looks.look(name)
        places = sorted(times)
        axes.plot(places, [times[place] for place in places], color=colour, marker=marker, **LINE)
        ends.append((places[-1], times[places[-1]], name, colour))
    finish(axes, "ranks", "time, ms")
    style.label_lines(axes, ends)
    return figure


def lengths(series):
    """[(label, name, kind, {thousands of tokens: tokens a second})]"""
    figure, axes = log_axes((9, 5), {length for _, _, _, speeds in series for length in speeds})
    axes.set_xticks(axes.get_xticks(), [f"{int(length)}K" for length in axes.get_xticks()])
    ends = []
    for label, name, kind, speeds in series[:style.MOST_LINES]:
        colour, marker = looks.look(name)
        form = {"linestyle": "none", "fillstyle": "none"} if kind == PUBLISHED else {"linestyle": "-"}
        axes.plot(list(speeds), list(speeds.values()), color=colour, marker=marker, **LINE, **form)
        ends.append((*list(speeds.items())[-1], label, colour))
    axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axes.set_xlabel("tokens of the whole sequence")
    axes.set_ylabel("tokens a second")
    style.label_lines(axes, ends)
    return figure


def blocks(swept):
    """{ranks: ({K: ms}, {the chosen K: ms})}"""
    figure, axes = log_axes((8, 4), {count for times, _ in swept.values() for count in times})
    axes.set_xticks(axes.get_xticks(), [str(int(count)) for count in axes.get_xticks()])
    ends = []
    for (ranks, (times, chosen)), colour, marker in zip(swept.items(), style.COLOURS, style.MARKERS):
        axes.plot(list(times), list(times.values()), color=colour, marker=marker, **LINE)
        axes.plot(list(chosen), list(chosen.values()), "o", markersize=12, markerfacecolor="none",
                  markeredgecolor=colour, markeredgewidth=1.8)
        ends.append((*list(times.items())[-1], f"{ranks} ranks", colour))
    finish(axes, "blocks K", "time, ms")
    style.label_lines(axes, ends)
    return figure


def predicted(points, known="measured"):
    """[(name, measured ms, predicted ms)]"""
    figure, axes = style.subplots((6.4, 5))
    low = min(min(one[1:]) for one in points) / 1.5
    high = max(max(one[1:]) for one in points) * 1.5
    axes.fill_between([low, high], [low / 1.2, high / 1.2], [low * 1.2, high * 1.2], color=style.GREY, alpha=0.3,
                      linewidth=0)
    axes.plot([low, high], [low, high], color=style.GREY, linewidth=1)
    for name in sorted({one[0] for one in points}):
        own = [one for one in points if one[0] == name]
        colour, marker = looks.look(name)
        axes.plot([one[1] for one in own], [one[2] for one in own], linestyle="none", markersize=4, label=name,
                  color=colour, marker=marker)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    style.plain_log(axes.xaxis)
    finish(axes, f"{known}, ms", "predicted, ms")
    style.add_grid(axes, "both")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, fontsize=8)
    return figure


DRAW = {"bars": bars.bars, "operator_bars": bars.operator_bars, "winners": winners_map.winners,
        "methods": winners_map.methods,
        "prediction": prediction, "scaling": scaling, "lengths": lengths, "blocks": blocks, "predicted": predicted,
        "published_calls": functools.partial(predicted, known="published"),
        "sizes": sizes.draw, "finding_lines": small_figures.lines, "finding_bars": small_figures.bars,
        "finding_strips": small_figures.strips}
