# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the page of the papers, in the style of style.py: lines."""

import matplotlib.ticker

from baton import looks, style
from baton.paper import bars, sizes, winners_map
from baton.paper import page as pages
from baton.paper.cells import FAR, PUBLISHED

LINE = {"markersize": 4.5, "linewidth": 1.6}


def draw_all(page, folder):
    """Draws every figure of the page that has data, saves it as PNG and SVG, and returns {name: its SVG}."""
    pictures = {}
    for figure in (one for one in pages.blocks(page, pages.Figure) if one.data):
        drawn = DRAW[figure.draw](figure.data)
        style.add_titles(drawn, drawn.axes[0], figure.title, figure.where)
        style.save(drawn, folder, figure.name)
        pictures[figure.name] = (folder / f"{figure.name}.svg").read_text(encoding="utf-8")
    return pictures


def lines(size, series, x_label, y_label="time, ms", tick=str):
    """Returns a figure with two logarithmic scales of [(label, colour, {x: y}, form)]; ticks of x are its values."""
    figure, axes = style.subplots(size)
    axes.set(xscale="log", yscale="log", xlabel=x_label, ylabel=y_label)
    xs = sorted({x for *_, points, _ in series for x in points})
    axes.set_xticks(xs, map(tick, xs))
    axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    style.add_grid(axes, "y")
    for _, colour, points, form in series:
        axes.plot(sorted(points), [points[x] for x in sorted(points)], color=colour, **LINE, **form)
    style.plain_log(axes.yaxis)
    style.label_lines(axes, [(max(points), points[max(points)], label, colour) for label, colour, points, _ in series])
    return figure


def short_count(count):
    return f"{count // 1024}K" if count >= 1024 else str(count)


def look_of(name):
    colour, marker = looks.look(name)
    return colour, {"marker": marker}


def prediction(found):
    """[(title, name, {ranks: published}, {ranks: simulated})]; the first two ranks are those that were fitted."""
    figure = lines((8, 4.4), [(title, looks.look(name).colour, simulated, {}) for title, name, _, simulated in found], "GPUs")
    axes = figure.axes[0]
    fitted = sorted({ranks for _, _, published, _ in found for ranks in published})[:2]
    for _, name, published, simulated in found:
        colour = looks.look(name).colour
        # The published times from which the simulation differs by at most FAR.
        axes.fill_between(sorted(simulated), *([simulated[ranks] / (1 + off) for ranks in sorted(simulated)] for off in (FAR, -FAR)),
                          color=colour, alpha=0.12, linewidth=0)
        for ranks, time in published.items():
            axes.plot(ranks, time, "o", markersize=7, markeredgecolor=colour, markeredgewidth=1.6,
                      color=colour if ranks in fitted else "white")
    return figure


def scaling(found):
    """[(name, {ranks: ms})]"""
    return lines((9, 5), [(name, look_of(name)[0], times, look_of(name)[1]) for name, times in found[:style.MOST_LINES]], "ranks",
                 tick=short_count)


def lengths(found):
    """[(label, name, kind, {thousands of tokens: tokens a second})]"""
    figure = lines((9, 5), [(label, looks.look(name).colour, speeds, {
        "marker": looks.look(name).mark, **({"linestyle": "none", "fillstyle": "none"} if kind == PUBLISHED else {})})
        for label, name, kind, speeds in found[:style.MOST_LINES]], "tokens of the whole sequence", "tokens a second", "{}K".format)
    axes = figure.axes[0]
    axes.yaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    return figure


def blocks(swept):
    """{ranks: ({K: ms}, {the chosen K: ms})}"""
    figure = lines((8, 4), [(f"{ranks} ranks", colour, times, {"marker": marker}) for (ranks, (times, _)), colour, marker in zip(
        swept.items(), style.COLOURS, style.MARKERS)], "blocks K")
    for (_, chosen), colour in zip(swept.values(), style.COLOURS):
        figure.axes[0].plot(list(chosen), list(chosen.values()), "o", markersize=12, markerfacecolor="none",
                            markeredgecolor=colour, markeredgewidth=1.8)
    return figure


def predicted(points):
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
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), xlabel="measured, ms", ylabel="predicted, ms")
    style.plain_log(axes.xaxis)
    style.plain_log(axes.yaxis)
    style.add_grid(axes, "both")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False, fontsize=8)
    return figure


DRAW = {"bars": bars.bars, "operator_bars": bars.operator_bars, "winners": winners_map.winners,
        "methods": winners_map.methods, "prediction": prediction, "scaling": scaling, "lengths": lengths, "blocks": blocks,
        "predicted": predicted, "sizes": sizes.draw}
