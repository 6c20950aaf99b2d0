# SPDX-License-Identifier: Apache-2.0
"""The figures of the page: rows of them, with those of several sessions beside one another on one scale."""

import collections
import functools

from baton import style, words
from baton.report.page import bars, charts, lines
from baton.report.page.sections import Section

AT_FIRST = 6  # figures of a section that are open; the others are behind a click

# A figure of the page; `svg` is None where the session `title` has none.
Figure = collections.namedtuple("Figure", "title svg caption")


def section(number, name, title, make):
    """The Section of the charts that `make` finds in the comparisons of a session."""
    return Section(number, name, title, title, "report/page/figures.html", functools.partial(of_kind, make))


def of_kind(make, content):
    rows = list(figures(content.sessions, content.letters, make))
    return {"open": rows[:AT_FIRST], "more": rows[AT_FIRST:]} if rows else None


def figures(sessions, letters, make):
    """Yields rows of figures of one kind: one of one session, those of several beside one another."""
    places = {}
    for letter, session in zip(letters, sessions):
        for subject, chart in make(session.comparisons):
            beside = subject._replace(group=charts.without_machine(subject.group))
            places.setdefault(subject if letter in places.get(beside, ()) else beside, {})[letter] = chart
    for subject in sorted(places, key=lambda one: order(one, places[one].values())):
        yield side_by_side(places[subject], letters)


def order(subject, made):
    """Orders figures: what proves nothing comes last, and what has more lines or bars comes before its like."""
    most = max(len(chart.lines if isinstance(chart, lines.Chart) else chart.bars) for chart in made)
    return all(chart.weak for chart in made), subject.importance[:4], -most, subject.importance


def side_by_side(of_letters, letters):
    """The figure of each session with one scale. Of two sessions each has its side; of more, only those with this figure."""
    kind = lines if isinstance(next(iter(of_letters.values())), lines.Chart) else bars
    seconds = [second for chart in of_letters.values() for second in kind.times(chart)]
    return [figure(kind, of_letters[letter], letter, seconds) if letter in of_letters else Figure(letter, None, "")
            for letter in letters if letter in of_letters or len(letters) == 2]


def figure(kind, chart, letter, seconds):
    chart = chart._replace(title=(f"{letter}: " if letter else "") + chart.title + " (oversubscribed)" * chart.weak)
    missing = kind.left_out(chart)
    drawn, notes = kind.draw(chart, seconds)
    return Figure(chart.title, style.inlined(drawn, f"{chart.title}. {chart.about}", notes),
                  chart.about + (f" Not drawn: {words.names(missing)}." if missing else ""))


SECTIONS = (section(1, "sizes", "Time against size", charts.against_size), section(2, "ranks", "Time against ranks", charts.against_ranks),
            section(3, "layers", "Where a layer's time goes", charts.layers))
