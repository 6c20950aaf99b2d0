# SPDX-License-Identifier: Apache-2.0
"""The space-time diagram of one round: ranks from top to bottom, time to the right.

Reads a trace that a bench wrote with --trace. Local steps are bars on their rank's row, coloured by verb; a message is
an arrow from where its send started to where its receive finished. On GPUs an exchange is a kernel, whose steps have no
times of their own: one bar for all of them, under the local work that runs on another stream.
"""

import collections

import matplotlib.ticker
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from baton import style, traces

ABOUT = __doc__.splitlines()[0]

COLOURS = {"compute": style.BLUE, "combine": style.VERMILION, "copy": style.GREEN, "native": style.PURPLE,
           "exchange": style.ORANGE}
LABELS = {"compute": "local kernel, its own stream", "exchange": "exchange kernel, its own stream"}
NAMED = ("compute", "native", "exchange")  # verbs whose bars have names
UNDER_WAY = style.SKY
LEAST = 1e-3  # of the figure's width: steps that are nearer to one another are drawn as one
# A rank's row extends HALF to both sides of its number. Local kernels are on top, the steps of the exchange below them,
# and a strip at the bottom shows when messages of the rank were under way.
HALF, STRIP, GAP = 0.34, 0.09, 0.02


def draw(one, between=None, titles=True, most_messages=None):
    """Draws a traces.Round. Of more than `most_messages` some are drawn."""
    ranks = one.title["ranks"]
    figure, axes = style.subplots((9, 2.2 + min(0.75 * ranks, 4 + 0.22 * ranks)))
    first, last = between or (0, 1.01 * max(span.finish for span in one.spans))
    unit, factor = ("ms", 1e-3) if last - first >= 1000 else ("µs", 1)
    one = scaled(one, factor)
    axes.set_xlim(first * factor, last * factor)
    shape_axes(axes, ranks, unit)
    verbs = [verb for verb in COLOURS if any(span.verb == verb for span in one.spans)]
    for verb in verbs:
        draw_bars(axes, [span for span in one.spans if span.verb == verb], COLOURS[verb], place(verb, verbs))
    draw_under_way(axes, one.spans)
    draw_messages(axes, some(one.messages, most_messages), lane(verbs))
    if ranks <= 8:
        for verb in filter(NAMED.__contains__, verbs):
            add_names(axes, [span for span in one.spans if span.verb == verb], place(verb, verbs))
    add_legend(axes, verbs, one.messages)
    if titles:
        style.add_titles(figure, axes, title(one.title), subtitle(one.title))
    return figure


def scaled(one, factor):
    spans = [span._replace(start=span.start * factor, finish=span.finish * factor) for span in one.spans]
    messages = [message._replace(sent=message.sent * factor, received=message.received * factor)
                for message in one.messages]
    return traces.Round(spans, messages, one.title)


def place(verb, verbs):
    """Returns where the bars of a verb begin in a row, and their height: without neighbours they fill the row."""
    top, bottom = -HALF, HALF - (0 if "exchange" in verbs else STRIP + GAP)
    if verb != "compute" and "compute" in verbs:
        top = (top + bottom + GAP) / 2
    if verb == "compute" and len(verbs) > 1:
        bottom = (top + bottom - GAP) / 2
    return top, bottom - top


def draw_bars(axes, spans, colour, vertical):
    """Draws bars. An outline in their own colour keeps short steps visible, a white one separates long ones."""
    top, height = vertical
    long = 0.005 * width(axes)
    for rank, ours in by_rank(spans).items():
        times = [(span.start, span.finish) for span in ours if span.finish - span.start > long]
        times += union([span for span in ours if span.finish - span.start <= long], LEAST * width(axes))
        axes.broken_barh([(start, finish - start) for start, finish in times], (rank + top, height),
                         edgecolors=["white" if finish - start > long else colour for start, finish in times],
                         facecolor=colour, linewidth=0.5, zorder=2.5)


def draw_under_way(axes, spans):
    for rank, ours in by_rank([span for span in spans if span.verb in traces.MESSAGES]).items():
        axes.broken_barh([(start, finish - start) for start, finish in union(ours)], (rank + HALF - STRIP, STRIP),
                         facecolor=UNDER_WAY, zorder=2)


def some(messages, most):
    every = max(1, -(-len(messages) // most)) if most else 1
    return sorted(messages, key=lambda message: message.sent)[::every]


def by_rank(spans):
    ranks = collections.defaultdict(list)
    for span in spans:
        ranks[span.rank].append(span)
    return ranks


def union(spans, gap=0.0):
    """Returns the times during which at least one span lasts, as a list of [start, finish], those at most `gap` apart as one."""
    times = []
    for span in sorted(spans, key=lambda span: span.start):
        if times and span.start <= times[-1][1] + gap:
            times[-1][1] = max(times[-1][1], span.finish)
        else:
            times.append([span.start, span.finish])
    return times


def lane(verbs):
    """Returns the edges of a row between which arrows leave and end: its own, or those of the exchange's bars."""
    if "exchange" not in verbs:
        return -HALF, HALF
    top, height = place("exchange", verbs)
    return top, top + height


def draw_messages(axes, messages, edges):
    """Draws arrows from the edge of one row to the near edge of another. Many arrows are drawn faint."""
    if not messages:
        return
    crowd = len(messages)
    down = [message.receiver > message.sender for message in messages]
    starts = [message.sender + edges[1 if is_down else 0] for message, is_down in zip(messages, down)]
    ends = [message.receiver + edges[0 if is_down else 1] for message, is_down in zip(messages, down)]
    axes.quiver([message.sent for message in messages], starts,
                [message.received - message.sent for message in messages],
                [end - start for start, end in zip(starts, ends)],
                angles="xy", scale_units="xy", scale=1, units="dots", minlength=0, color=style.INK,
                zorder=2.2 if edges == (-HALF, HALF) else 2.8,
                headwidth=5, headlength=7, headaxislength=6, width=1.5 if crowd <= 200 else 0.9,
                alpha=0.9 if crowd <= 200 else 0.6 if crowd <= 1000 else 0.25)


def add_names(axes, spans, vertical):
    """Writes the name of each span into its bar if it fits."""
    top, height = vertical
    letter = 0.0063 * width(axes)  # about the width of a small letter
    left, right = axes.get_xlim()
    for span in spans:
        start, finish = max(span.start, left), min(span.finish, right)
        if finish - start > letter * (len(span.name) + 1):
            axes.text((start + finish) / 2, span.rank + top + height / 2, span.name, color="white", fontsize=7,
                      ha="center", va="center_baseline", zorder=3)


def width(axes):
    left, right = axes.get_xlim()
    return right - left


def shape_axes(axes, ranks, unit):
    axes.set_ylim(ranks - 1 + 1.4 * HALF, -1.4 * HALF)
    axes.set_yticks(range(ranks), [f"rank {rank}" if ranks <= 16 else f"{rank}" for rank in range(ranks)])
    axes.tick_params(axis="y", length=0)
    if ranks > 16:
        axes.set_ylabel("rank")
    axes.set_xlabel(f"time since the common start, {unit}")
    axes.xaxis.set_major_formatter(matplotlib.ticker.StrMethodFormatter("{x:g}"))
    style.add_grid(axes, "x")
    axes.spines["left"].set_visible(False)
    for rank in range(ranks):
        axes.axhspan(rank - HALF, rank + HALF, facecolor="#f3f3f3", zorder=0)


def add_legend(axes, verbs, messages):
    on_streams = "exchange" in verbs
    handles = [Patch(color=COLOURS[verb], label=LABELS[verb] if on_streams else verb) for verb in verbs]
    if messages:
        handles += [] if on_streams else [Patch(color=UNDER_WAY, label="messages of the rank under way")]
        label = ("kernel that sends to kernel that receives" if on_streams
                 else "message, from its send's start to its receive's finish")
        handles += [Line2D([], [], color=style.INK, marker=">", markersize=4, label=label)]
    style.legend_below(axes, handles, ncols=len(handles), fontsize=8)


def title(words):
    name = words["case"].split("/")[0]
    return f"{name}: one round on {words['ranks']} rank{'s' if words['ranks'] > 1 else ''} in space and time"


def subtitle(words):
    said_elsewhere = ("ranks:", "blocks:")
    shape = [part for part in words["case"].split("/")[1:]
             if part != words["executor"] and not part.startswith(said_elsewhere)]
    blocks = f"{words['blocks']} block{'s' if words['blocks'] > 1 else ''}"
    return "\n".join([" · ".join(shape),
                      f"executor {words['executor']}, {blocks}; one round, no statistic; commit {words['commit']}"])

