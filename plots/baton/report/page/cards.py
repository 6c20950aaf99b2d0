# SPDX-License-Identifier: Apache-2.0
"""Cards: for each question the finding, a figure of the rows that it is about, and what else is known.

A figure has a row for each name, the fastest first: a point at its median with the interval over launches. Rows that
tie for the least time are green. Points are hollow where they were simulated.
"""

import collections

from matplotlib import ticker

from baton import style, words
from baton.report import answer, axes, certainty, contests, growth, one_gpu, ranking

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
TIED, OTHER = "#00664a", "#57606a"


def of(session):
    """Yields the Cards of a session, in the order of its answer."""
    alone = one_gpu.sentences(one_gpu.works(session))
    if alone:
        svg = works(session)
        yield Card(QUESTIONS[answer.ONE_GPU], alone[0], alone[1], alone[2:], svg, "#cases" if svg else "")
    for one in answer.asked(session):
        finding, *details = [text for text, _ in one.sentences if text]
        yield Card(question(one), note(one), finding, details, *figure(one.contest))
    where, *told, off = growth.sentences(session)
    if told:
        last = growth.grown(session)[0].contests[-1]
        yield Card(QUESTIONS[answer.SIMULATED], where or f"{axes.heading(last)}.", told[0], [*told[1:], *filter(None, [off])], *figure(last))


def question(asked):
    """What a card answers: of a second work of the same bench with its name."""
    contest = asked.contest
    if contest is None:
        return QUESTIONS[asked.heading]
    is_alone = len(contest.competitors) < 2
    what = {answer.EXCHANGE: "exchange", answer.LAYER: "layer", answer.MODEL: "model"}[asked.heading]
    work = "" if contest.is_model or contest.kind in (contests.SCAN, contests.LINEAR) else f"{axes.work(contest)}: "
    asks = f"how long does this {what} take?" if is_alone else words.lowered(QUESTIONS[asked.heading])
    return f"{work}{asks}" if work else f"{asks[:1].upper()}{asks[1:]}"


def note(asked):
    """The shape of what a card is about, its launches, and what its figure leaves out."""
    contest = asked.contest
    if contest is None:
        return ""
    launches = certainty.launches_of(contest)
    left_out = f" {style.MOST_LINES - 1} with the lowest medians and the last are drawn." * (len(contest.competitors) > style.MOST_LINES)
    return f"{axes.heading(contest)}; {len(contest.competitors) or 1} compared; {words.count(launches, 'launch', 'launches')}.{left_out}"


def figure(contest):
    """Returns the figure of a contest and a link to its rows; (None, "") where a figure would compare nothing."""
    return (ranked(contest), "#cases") if contest and len(contest.competitors) > 1 else (None, "")


def ranked(contest):
    """Returns the figure of a contest as SVG."""
    ranks = ranking.rank(contest)
    rows = sorted([ranks.first, *ranks.unbeaten, *ranks.beaten], key=lambda row: row.median)
    rows = [*rows[:style.MOST_LINES - 1], rows[-1]] if len(rows) > style.MOST_LINES else rows
    return drawn([Point(contest.label_of(row), row, TIED if ranks.judged and row not in ranks.beaten else OTHER) for row in rows],
                 f"Times of {axes.heading(contest)}")


def works(session):
    """Returns the figure of the layers on one GPU as SVG, those with both passes alone, or None if there are none."""
    found = [one for one in one_gpu.works(session) if one.contest.way == "both" and not one.contest.is_model]
    points = [Point(one_gpu.work_of(one.contest), one.row, OTHER) for one in sorted(found, key=lambda one: one.row.median)]
    return drawn(points, "Times of layers on one GPU, both passes") if points else None


def drawn(points, title):
    """Returns a figure of Points, one below the other, as SVG."""
    bottom = TOP + ROW * len(points)
    figure, axes = style.placed_axes(WIDTH, bottom + BOTTOM, LEFT, TOP, WIDTH - RIGHT, bottom)
    ends = [end for _, row, _ in points for end in (row.median, *(row.interval or ()))]
    high = min(max(ends), FAR * points[-1].row.median)
    axes.set(xlim=(0, 1.04 * high), ylim=(bottom, TOP))
    shape(axes, high)
    notes = {}
    for number, (name, row, colour) in enumerate(points):
        middle = TOP + ROW * (number + 0.5)
        axes.text(-0.02, middle, style.wrapped(name, LETTERS), ha="right", va="center", linespacing=1, color=colour,
                  fontsize=TEXT if len(name) <= LETTERS else SMALL, transform=axes.get_yaxis_transform())
        if row.interval:
            axes.hlines(middle, *row.interval, color=colour, linewidth=2.5, alpha=0.5)
        gid = f"point-{number}"
        axes.plot([row.median], [middle], marker="o", markersize=7, markerfacecolor="white" if row.is_simulated else colour,
                  markeredgecolor=colour, linestyle="none", gid=gid)
        notes[gid] = f"{name}: {words.time_of(row)}"
    return style.inlined(figure, title, notes)


def shape(axes, high):
    unit = words.time_unit(high)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, steps=(1, 2, 5, 10)))
    axes.xaxis.set_major_formatter(lambda tick, _: words.in_unit(tick, unit, False))
    axes.set_xlabel(unit[0], fontsize=TEXT, loc="right")
    axes.tick_params(labelsize=TEXT, length=0)
    style.add_grid(axes, "x")
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
