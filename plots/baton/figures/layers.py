# SPDX-License-Identifier: Apache-2.0
"""Where an operator's time goes, one bar a method: local work, and the exchange that it leaves exposed.

Writes operator_time.png and .svg, at the largest rank count measured. Local work is the median of the mode
compute_only; the exposed exchange is what the overlapped median exceeds it by. A tick marks the median with
every exchange waited for at once. Methods that work on what the exchange brings are not taken apart. Softmax methods are
ranked apart from linear ones, since they compute something else.
"""

import collections

from matplotlib.collections import LineCollection
from matplotlib.legend_handler import HandlerLineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from baton import looks, operators, results, style
from baton.checks import PASSES
from baton.figures import captions, launches

NAME = "operator_time"

# One method: medians in ms; parts that were not measured are None.
Bar = collections.namedtuple("Bar", "label total interval local_work waited_for records record")

LOCAL_WORK = {"color": "#B8C0C8", "label": "local work (no exchange)"}
EXPOSED = "exchange not hidden by it, in the method's colour"
UNSPLIT = "whole operator: works on what the exchange brings, so not split"
WAITED_FOR = {"color": style.BLACK, "label": "total if each exchange is waited for at once"}
INTERVAL = {"color": style.GREY, "label": "95 % interval of the total"}


def main(options):
    records = operators.measured(options.results, operators.asked_setting(options))
    bars = chosen_bars(operators.points(records), options)
    if not bars:
        raise results.ResultsError(f"{', '.join(options.results)}: no timed record to draw")
    style.save(draw(bars), options.out, NAME)


def add_options(parser):
    parser.add_argument("--results", nargs="+", required=True, metavar="FILE", help="records, JSON lines")
    parser.add_argument("--pass", dest="pass_", choices=PASSES,
                        help="default: both, or else what was measured")
    parser.add_argument("--ranks", type=int, help="default: the most")
    parser.add_argument("--tokens", type=int, help="a rank; default: those with most methods")
    operators.add_setting_options(parser)


def chosen_bars(points, options):
    """Returns the bars of one pass, rank count and number of tokens, the fastest method first."""
    asked = {"pass": options.pass_, "ranks": options.ranks, "tokens": options.tokens}
    groups = collections.defaultdict(list)
    for record in results.matching(points.values(), **asked):
        if operators.stands_for_its_method(record) and results.why_no_time(record) is None:
            groups[operators.delta_rule(record), record["pass"], record["ranks"], record["tokens"]].append(record)
    group = max(groups.values(), key=preference, default=[])
    labels = operators.labels({operators.row(record) for record in group})
    return sorted((bar(points, labels, record) for record in group),
                  key=lambda one: (operators.is_softmax(one.record), one.total))


def preference(group):
    """Prefers both passes to one, then more ranks, then more methods, then more tokens."""
    one = group[0]
    return PASSES.index(one["pass"]), one["ranks"], len(group), one["tokens"]


def bar(points, labels, record):
    row = operators.row(record)
    alone, waited = (operators.find(points, record, mode) for mode in ("compute_only", "exposed"))
    return Bar(labels[row], milliseconds(record), [seconds * 1e3 for seconds in record["ci95_seconds"]],
               alone and milliseconds(alone), waited and milliseconds(waited),
               [one for one in (record, alone, waited) if one], record)


def milliseconds(record):
    return record["median_seconds"] * 1e3


# --- Drawing --------------------------------------------------------------------------------------------


def draw(bars):
    heights = places(bars)
    figure, axes = style.subplots((8, 2.9 + 0.36 * (heights[-1] + 1)))
    of_launches = origin(bars)
    for height, one in zip(heights, bars):
        draw_bar(axes, height, one)
    right = max(max(one.interval[1], one.waited_for or 0, one.local_work or 0) for one in bars)
    for height, one in zip(heights, bars):
        draw_label(axes, height, one, 0.012 * right, of_launches)
    shape_axes(axes, bars, right)
    add_legend(axes, bars)
    style.add_titles(figure, axes, title(bars[0].record), subtitle(bars))
    return figure


def places(bars):
    """Returns the height of each bar. Softmax methods stand below a gap."""
    gap = SOFTMAX_GAP if not operators.is_softmax(bars[0].record) else 0
    return [number + gap * operators.is_softmax(one.record) for number, one in enumerate(bars)]


SOFTMAX_GAP = 1


def origin(bars):
    return launches.Launches([record for one in bars for record in one.records])


def draw_bar(axes, height, one):
    thick = 0.62
    colour = looks.look(one.record["name"]).colour
    if one.local_work is None:
        axes.barh(height, one.total, thick, **unsplit(colour))
    else:
        axes.barh(height, one.local_work, thick, **LOCAL_WORK)
        axes.barh(height, max(0, one.total - one.local_work), thick, left=one.local_work, color=colour)
    low, high = one.interval
    axes.errorbar(one.total, height, xerr=[[one.total - low], [high - one.total]], fmt="none", capsize=3,
                  elinewidth=1.2, ecolor=INTERVAL["color"])
    if one.waited_for is not None:
        axes.vlines(one.waited_for, height - 0.42, height + 0.42, linewidth=1.8, color=WAITED_FOR["color"])


def unsplit(colour):
    return {"facecolor": "white", "edgecolor": colour, "hatch": "////"}


def draw_label(axes, height, one, gap, of_launches):
    end = max(one.interval[1], one.waited_for or 0, one.local_work or 0)
    text = f"{one.total:.2f}"
    if one.local_work is not None and one.total < one.local_work:
        text += f" (exchange {one.total - one.local_work:+.2f})".replace("-", "−")
    if any(map(of_launches.is_elsewhere, one.records)):
        text += " *"
    axes.text(end + gap, height, text, va="center", fontsize=9)


def shape_axes(axes, bars, right):
    heights = places(bars)
    axes.set_yticks(heights, [one.label for one in bars])
    if len({operators.is_softmax(one.record) for one in bars}) > 1:
        first = next(height for height, one in zip(heights, bars) if operators.is_softmax(one.record))
        axes.text(0.01 * right, first - 1, "softmax attention, another computation:", va="center",
                  fontsize=8.5, style="italic")
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.14 * right)
    axes.set_xlabel(("simulated" if results.is_simulated(bars[0].record) else "median") + " time of a round, ms")
    style.add_grid(axes, "x")


def add_legend(axes, bars):
    """Adds a legend under the axes with the marks that some bar has."""
    split = any(one.local_work is not None for one in bars)
    entries = [Patch(**LOCAL_WORK), Patch(color=style.INK, label=EXPOSED)] * split
    if any(one.waited_for is not None for one in bars):
        entries.append(LineCollection([[(0, 0), (0, 1)]], linewidths=[1.8], colors=[WAITED_FOR["color"]],
                                      label=WAITED_FOR["label"]))
    entries.append(Line2D([], [], linewidth=1.2, **INTERVAL))
    if any(one.local_work is None for one in bars):
        entries.append(Patch(**unsplit(style.INK), label=UNSPLIT))
    style.legend_below(axes, entries, ncols=2, fontsize=8, handler_map={LineCollection: UprightTick()})


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
    simulated = "simulated " if results.is_simulated(record) else ""
    rule = f" of {operators.delta_rule(record)} layers" if operators.delta_rule(record) else ""
    return f"Operator time{rule} on {record['ranks']} {simulated}ranks, {passes}"


def subtitle(bars):
    newest = max((one.record for one in bars), key=lambda record: record["time"])
    machine, what, chunks, shape, cadence = captions.describe(newest)
    of_launches, crowded = origin(bars), captions.crowded_ranks([one.record for one in bars])
    statistic = "one round in virtual time" if results.is_simulated(newest) else (
        f"medians of {newest['rounds']} rounds after {newest['warmup']} of warm-up, each the slowest rank's")
    return "\n".join([
        f"{machine}; {what}",
        f"{newest['tokens']} tokens a rank, {shape}",
        f"{chunks}; {cadence}",
        statistic + ("; * with times of another launch" if of_launches.are_mixed() else ""),
        *([crowded] if crowded else []), of_launches.label("main")])

