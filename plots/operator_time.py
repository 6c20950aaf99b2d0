# SPDX-License-Identifier: Apache-2.0
"""Where an operator's time goes, one bar a method: local work, and the exchange that it leaves exposed.

Writes operator_time.png and .svg, at the largest rank count measured. Local work is the median of the mode
compute_only; the exposed exchange is what the overlapped median exceeds it by. A tick marks the median with
every exchange waited for at once. Methods that work on what the exchange brings are not taken apart.
"""

import argparse
import collections
import pathlib

from matplotlib.collections import LineCollection
from matplotlib.legend_handler import HandlerLineCollection
from matplotlib.lines import Line2D

import lib
from lib import operators, results, style
from lib.style import plt

NAME = "operator_time"

# One method: medians in ms; parts that were not measured are None.
Bar = collections.namedtuple("Bar", "label total interval local_work waited_for launches record")

LOCAL_WORK = {"color": style.BLUE, "label": "local work (no exchange)"}
EXPOSED = {"color": style.ORANGE, "label": "exchange not hidden by it"}
UNSPLIT = {"color": style.PURPLE, "label": "whole operator: works on what the exchange brings, so not split"}
WAITED_FOR = {"color": style.BLACK, "label": "total if each exchange is waited for at once"}
INTERVAL = {"color": style.GREY, "label": "95 % interval of the total"}


def main():
    options = parse_arguments()
    records = operators.measured(options.results, operators.asked_setting(options))
    bars = chosen_bars(results.points(records), options)
    if not bars:
        raise results.ResultsError(f"{', '.join(options.results)}: no timed record to draw")
    style.save(draw(bars), options.out, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--pass", dest="pass_", choices=operators.PASSES,
                        help="default: both, or else what was measured")
    parser.add_argument("--ranks", type=int, help="default: the most")
    parser.add_argument("--tokens", type=int, help="a rank; default: those with most methods")
    operators.add_setting_options(parser)
    return parser.parse_args()


def chosen_bars(points, options):
    """Returns the bars of one pass, rank count and number of tokens, the fastest method first."""
    asked = {"pass": options.pass_, "ranks": options.ranks, "tokens": options.tokens}
    groups = collections.defaultdict(list)
    for record in results.matching(points.values(), **asked):
        if operators.stands_for_its_method(record) and results.why_no_time(record) is None:
            groups[record["pass"], record["ranks"], record["tokens"]].append(record)
    group = max(groups.values(), key=preference, default=[])
    labels = operators.labels({operators.row(record) for record in group})
    return sorted((bar(points, labels, record) for record in group), key=lambda one: one.total)


def preference(group):
    """Prefers both passes to one, then more ranks, then more methods, then more tokens."""
    one = group[0]
    return operators.PASSES.index(one["pass"]), one["ranks"], len(group), one["tokens"]


def bar(points, labels, record):
    row = operators.row(record)
    alone = operators.find(points, row, "compute_only", record)
    waited = operators.find(points, row, "exposed", record)
    return Bar(labels[row], milliseconds(record), [seconds * 1e3 for seconds in record["ci95_seconds"]],
               alone and milliseconds(alone), waited and milliseconds(waited),
               {one["run"] for one in (record, alone, waited) if one}, record)


def milliseconds(record):
    return record["median_seconds"] * 1e3


# --- Drawing --------------------------------------------------------------------------------------------


def draw(bars):
    style.use()
    figure, axes = plt.subplots(figsize=(8, 2.7 + 0.36 * len(bars)), layout="constrained")
    for height, one in enumerate(bars):
        draw_bar(axes, height, one)
    right = max(max(one.interval[1], one.waited_for or 0, one.local_work or 0) for one in bars)
    for height, one in enumerate(bars):
        draw_label(axes, height, one, 0.012 * right)
    shape_axes(axes, bars, right)
    add_legend(figure, axes)
    style.add_titles(figure, axes, title(bars[0].record), subtitle(bars))
    return figure


def draw_bar(axes, height, one):
    thick = 0.62
    if one.local_work is None:
        axes.barh(height, one.total, thick, **UNSPLIT)
    else:
        axes.barh(height, one.local_work, thick, **LOCAL_WORK)
        axes.barh(height, max(0, one.total - one.local_work), thick, left=one.local_work, **EXPOSED)
    low, high = one.interval
    axes.errorbar(one.total, height, xerr=[[one.total - low], [high - one.total]], fmt="none", capsize=3,
                  elinewidth=1.2, ecolor=INTERVAL["color"], label=INTERVAL["label"])
    if one.waited_for is not None:
        axes.vlines(one.waited_for, height - 0.42, height + 0.42, linewidth=1.8, **WAITED_FOR)


def draw_label(axes, height, one, gap):
    end = max(one.interval[1], one.waited_for or 0, one.local_work or 0)
    text = f"{one.total:.2f}"
    if one.local_work is not None and one.total < one.local_work:
        text += f" (exchange {one.total - one.local_work:+.2f})".replace("-", "−")
    axes.text(end + gap, height, text, va="center", fontsize=9)


def shape_axes(axes, bars, right):
    axes.set_yticks(range(len(bars)), [one.label for one in bars])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.14 * right)
    axes.set_xlabel("median time of a round, ms")
    style.add_grid(axes, "x")


def add_legend(figure, axes):
    """Adds a legend under the axes, with each mark once, in the order of the looks above."""
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles)))
    shown = [entry["label"] for entry in (LOCAL_WORK, EXPOSED, WAITED_FOR, INTERVAL, UNSPLIT)
             if entry["label"] in first]
    figure.legend([first[label] for label in shown], shown, loc="outside lower left", ncols=2, frameon=False,
                  fontsize=8, handler_map={LineCollection: UprightTick()})


class UprightTick(HandlerLineCollection):
    """Shows a tick in the legend as it stands in the figure."""

    def create_artists(self, legend, handle, xdescent, ydescent, width, height, fontsize, transform):
        middle = width / 2 - xdescent
        tick = Line2D([middle, middle], [-ydescent - 0.2 * height, 1.2 * height - ydescent],
                      color=handle.get_color()[0], linewidth=handle.get_linewidth()[0])
        tick.set_transform(transform)
        return [tick]


def title(record):
    passes = "forward and backward" if record["pass"] == "both" else record["pass"]
    return f"Operator time on {record['ranks']} ranks, {passes}"


def subtitle(bars):
    newest = max((one.record for one in bars), key=lambda record: record["time"])
    machine, what, chunks, shape, cadence = results.describe(newest)
    mixed = any(len(one.launches) > 1 for one in bars)
    return "\n".join([
        f"{machine}; {what}",
        f"{newest['tokens']} tokens a rank, {shape}",
        f"{chunks}; {cadence}",
        f"medians of {newest['rounds']} rounds after {newest['warmup']} of warm-up, each the slowest rank's"
        + ("; some bars are made of different launches" if mixed else "")])


if __name__ == "__main__":
    lib.run(main)
