# SPDX-License-Identifier: Apache-2.0
"""The page of the records of one or several sessions: one HTML file that works from disk and fetches nothing.

Several sessions, of two machines or commits for example, stand side by side under the letters A, B, ...
"""

import collections
import pathlib
import string

import markupsafe

from baton import files, pages, words
from baton.report import answer, axes, between, growth, one_gpu, rerun_command
from baton.report.contests import LINEAR, SCAN
from baton.report.page import bars, cards, charts, lines, provenance, strips, tables, trace_files

WHICH = {"collective": "Which exchange is fastest", "operator": "Which method is fastest in a layer",
         "model": "Which method is fastest in a model"}
MOST_PAGES = 20  # that a page links to
AT_FIRST = 6  # figures of a section that are open; the others are behind a click

# A figure of the page; `svg` is None where the session `title` has none.
Figure = collections.namedtuple("Figure", "title svg caption")
Paragraph = collections.namedtuple("Paragraph", "kind heading text")


def write(out, sessions):
    """Writes the page of these sessions.Session to the file `out`. Throws OSError."""
    out = pathlib.Path(out)
    files.write(out.parent, {out.name: html(sessions, out)})


def html(sessions, out):
    """Returns the page; links are relative to the folder of `out`."""
    letters = list(string.ascii_uppercase[:len(sessions)]) if len(sessions) > 1 else [""]
    kept = strips.Strips()
    of_tables = list(tables.tables(sessions, letters, kept.add))
    return pages.made(
        "report/page/sessions.html", title="Baton: the answer", style="report/page/style.css", letters=letters, question=question(sessions),
        between=between.sentence(*sessions) if len(sessions) == 2 else "",
        answers=[{"name": provenance.heading(session, letter) if letter else "", "cards": list(cards.of_session(session)),
                  "paragraphs": paragraphs(session)} for session, letter in zip(sessions, letters)],
        figures=[one for one in ((name, title, list(figures(sessions, letters, make))) for name, title, make in FIGURES) if one[2]],
        at_first=AT_FIRST,
        tables=of_tables, traces=[one for session in sessions for one in trace_files.of_contests(session)],
        sources=[provenance.section(session, letter, out) for session, letter in zip(sessions, letters)], beside=beside(out),
        strips=markupsafe.Markup(kept.json(rerun_command.command)))


def beside(out):
    """The names of the other pages in the folder of `out`, the newest first."""
    others = [path for path in pathlib.Path(out).parent.glob("*.html") if path.name != pathlib.Path(out).name]
    return [path.name for path in sorted(others, key=lambda path: -path.stat().st_mtime)][:MOST_PAGES]


def question(sessions):
    machines = list(dict.fromkeys(machine for session in sessions for machine in session.machines[:1]))
    if all(map(one_gpu.works, sessions)):
        return f"What one GPU can tell: {words.names(machines, len(machines)).removeprefix('1 x ')}"
    where = words.names(machines, len(machines)) or "a simulated machine"
    contests = [one.contest for session in sessions for one in answer.asked(session) if one.contest] \
        or [each.contests[-1] for session in sessions for each in growth.grown(session)]
    if not any(len(one.competitors) > 1 for one in contests):
        return f"What does it take on {where}?"
    return f"{which(contests)} on {where}?"


def which(contests):
    """What these contests ask, in the words of a title."""
    benches, kinds = {one["bench"] for one in contests}, {one.kind for one in contests}
    if len(benches) > 1:
        return "What is fastest"
    first = contests[0]
    if first.is_model or len(kinds) > 1 or first.kind in (SCAN, LINEAR):
        return WHICH[first["bench"]]
    return f"{WHICH[first['bench']]} of {axes.work(first)}" if first.is_layer else f"Which {words.lowered(axes.work(first))} is fastest"


def paragraphs(session):
    """The sentences of a session that are on no card, those of one heading together."""
    texts = {}
    for one in answer.sentences(session):
        if one.text and one.heading not in cards.QUESTIONS:
            texts.setdefault(one.heading, []).append(one.text)
    return [paragraph(heading, " ".join(found)) for heading, found in texts.items()]


def paragraph(heading, text):
    if heading == answer.HEAD:
        return Paragraph("where", "", text)
    kinds = {answer.CERTAINTY: "doubt", answer.FAILED: "lost"}
    return Paragraph(kinds.get(heading, ""), heading, text)


def figures(sessions, letters, make):
    """Yields rows of figures of one kind: one of one session, those of several beside one another."""
    places = {}
    for letter, session in zip(letters, sessions):
        for subject, chart in make(session.contests):
            beside = subject._replace(group=charts.place(subject.group))
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
    return Figure(chart.title, kind.figure(chart, seconds),
                  chart.about + (f" Not drawn: {words.names(missing)}." if missing else ""))


FIGURES = (("sizes", "Time against size", charts.against_size), ("ranks", "Time against ranks", charts.against_ranks),
           ("layers", "Where a layer's time goes", charts.layers))
