# SPDX-License-Identifier: Apache-2.0
"""Cards: for each question the finding, a figure of the rows that it is about, and what else is known.

A figure has a row for each name, the fastest first: a point at its median with the interval over launches. The fastest row
and those that tie with it are green, those that cannot be told from it brown. Points are hollow where they were simulated.
"""

import collections

from matplotlib import ticker

from baton import style, words
from baton.report import answer, axes, certainty, growth, one_gpu, ranking

# `finding` is the sentence that answers the question, `details` are the others, and `svg` is None without rows.
Card = collections.namedtuple("Card", "question title finding details svg link")

# A row of a figure: its name, its rows.Row and its colour.
Point = collections.namedtuple("Point", "name row colour")

QUESTIONS = {answer.ONE_GPU: "What does a layer take on one GPU?", answer.EXCHANGE: "Which exchange is fastest?",
             answer.LAYER: "Which method is fastest in a layer?", answer.MODEL: "Which method is fastest in a model?",
             answer.SIMULATED: "And on more devices?"}
WIDTH, LEFT, RIGHT, TOP, ROW, BOTTOM, TEXT, SMALL = 340, 152, 14, 6, 19, 34, 10.5, 8.5  # points
LETTERS = 24  # of a line of a name
FAR = 3  # times the largest median, where intervals are cut
NEAR = 1.6  # times the least: rows beyond that are not told from one another by their places, if there are nearer ones
TIED, UNDECIDED, OTHER = "#00664a", "#8a5a00", "#57606a"


def of_session(session):
    """Yields the Cards of a session, in the order of its answer."""
    alone = one_gpu.sentences(one_gpu.works(session))
    if alone:
        svg = works(session)
        yield Card(QUESTIONS[answer.ONE_GPU], alone[0], alone[1], alone[2:], svg, "#cases" if svg else "")
    found, firsts = answer.asked(session), {}
    for one in found:
        firsts.setdefault(one.heading, one)
    yield from (card(one, QUESTIONS[heading]) for heading, one in firsts.items())
    where, *texts, off = growth.sentences(session)
    if texts:
        last = growth.grown(session)[0].comparisons[-1]
        yield Card(QUESTIONS[answer.SIMULATED], where or f"{axes.heading(last)}.", texts[0], [*texts[1:], *filter(None, [off])], *figure(last))
    yield from (card(one, f"{one.title}: {words.lowered(QUESTIONS[one.heading])}") for one in found if one is not firsts[one.heading])


def card(asked, question):
    finding, *details = [text for text, _ in asked.sentences if text]
    is_alone = asked.comparison and len(asked.comparison.competitors) < 2
    asks = f"{axes.work(asked.comparison)}: what does it take?" if is_alone else question
    return Card(asks, note(asked), finding, details, *figure(asked.comparison))


def note(asked):
    """The shape of what a card is about, its launches, and what its figure leaves out."""
    comparison = asked.comparison
    if comparison is None:
        return ""
    launches = certainty.launches_of(comparison)
    left_out = f" {style.MOST_LINES - 1} with the lowest medians and the last are drawn." * (len(comparison.competitors) > style.MOST_LINES)
    compared = f"{len(comparison.competitors)} compared; " * (len(comparison.competitors) > 1)
    return f"{axes.heading(comparison)}; {compared}{words.count(launches, 'launch', 'launches')}.{left_out}"


def figure(comparison):
    """Returns the figure of a comparison and a link to its rows; (None, "") where a figure would compare nothing."""
    return (ranked(comparison), "#cases") if comparison and len(comparison.competitors) > 1 else (None, "")


def ranked(comparison):
    """Returns the figure of a comparison as SVG."""
    ranks = ranking.rank(comparison)
    rows = sorted([ranks.first, *ranks.unbeaten, *ranks.beaten], key=lambda row: row.median)
    rows = [*rows[:style.MOST_LINES - 1], rows[-1]] if len(rows) > style.MOST_LINES else rows
    return drawn([Point(comparison.label_of(row), row, colour(ranks, row)) for row in rows], f"Times of {axes.heading(comparison)}")


def colour(ranks, row):
    """What a row's colour says of it; the first one has that of the verdict."""
    if not ranks.judged or row in ranks.beaten:
        return OTHER
    return UNDECIDED if row in ranks.undecided or row is ranks.first and ranks.verdict == ranking.CANNOT_TELL else TIED


def works(session):
    """Returns the figure of the layers on one GPU as SVG, those with both passes alone, or None if there are none."""
    found = [one for one in one_gpu.works(session) if one.comparison.way == "both" and not one.comparison.is_model]
    points = [Point(one_gpu.work_of(one.comparison), one.row, OTHER) for one in sorted(found, key=lambda one: one.row.median)]
    return drawn(points, "Times of layers on one GPU, both passes") if points else None


def drawn(points, title):
    """Returns a figure of Points, one below the other, as SVG. What lies beyond its axis stands at the edge as an arrow."""
    bottom, (low, high) = TOP + ROW * len(points), limits(points)
    figure, axes = style.placed_axes(WIDTH, bottom + BOTTOM, LEFT, TOP, WIDTH - RIGHT, bottom)
    axes.set(xlim=(low, high), ylim=(bottom, TOP))
    shape(axes, low, high)
    notes, size = {}, TEXT if all(len(name) <= LETTERS for name, *_ in points) else SMALL
    for number, (name, row, ink) in enumerate(points):
        middle, is_beyond = TOP + ROW * (number + 0.5), row.median > high
        axes.text(-0.02, middle, style.wrapped(name, LETTERS), ha="right", va="center", linespacing=1, color=ink,
                  fontsize=size, transform=axes.get_yaxis_transform())
        if row.interval and not is_beyond:
            axes.hlines(middle, *row.interval, color=ink, linewidth=2.5, alpha=0.5)
        if is_beyond:
            axes.text(0.93, middle, words.seconds(row.median), ha="right", va="center", fontsize=size, color=ink,
                      transform=axes.get_yaxis_transform())
        gid = f"point-{number}"
        axes.plot([high - 0.02 * (high - low) if is_beyond else row.median], [middle], marker=">" if is_beyond else "o", markersize=7,
                  markerfacecolor="white" if row.is_simulated else ink, markeredgecolor=ink, linestyle="none", gid=gid)
        notes[gid] = f"{name}: {words.time_of(row)}"
    return style.inlined(figure, title, notes)


def limits(points):
    """The ends of the axis: it begins at nought, but where all rows near the first one are close together."""
    least, most = points[0].row.median, points[-1].row.median
    near = [row for _, row, _ in points if row.median <= NEAR * least]
    if len(near) < 2 or len(near) == len(points) and most > 1.2 * least:
        ends = [end for _, row, _ in points for end in (row.median, *(row.interval or ()))]
        return 0, 1.04 * min(max(ends), FAR * most)
    ends = [end for row in near for end in (row.median, *(row.interval or ()))]
    low, high = max(min(ends), least / NEAR), min(max(ends), NEAR * near[-1].median)
    room = 0.08 * max(high - low, 0.02 * least)
    return low - room, high + room * (1 if len(near) == len(points) else 3)


def shape(axes, low, high):
    unit = words.time_unit(high)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    axes.xaxis.set_major_formatter(lambda tick, _: f"{tick / unit[1]:.4g}")
    axes.set_xlabel(f"{unit[0]}{', not from 0' * (low > 0)}", fontsize=TEXT, loc="right")
    axes.tick_params(labelsize=TEXT, length=0)
    style.add_grid(axes, "x")
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
