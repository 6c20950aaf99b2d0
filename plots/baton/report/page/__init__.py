# SPDX-License-Identifier: Apache-2.0
"""The page of the records of one or several sessions: one HTML file that works from disk and fetches nothing.

Several sessions, of two machines or commits for example, stand side by side under the letters A, B, ...
"""

import pathlib
import string

from baton import files, words
from baton.report import answer
from baton.report.page import again, bars, charts, lines, provenance, said, strips, tables, trace_files

HERE = pathlib.Path(__file__).parent
AT_FIRST = 6  # figures of a section that are open; the others are behind a click
EMPTY = '<div class="empty"><p>Not in {}.</p></div>'


def write(out, sessions):
    """Writes the page of these sessions.Session to the file `out`. Throws OSError."""
    out = pathlib.Path(out)
    files.write(out.parent, {out.name: html(sessions, out)})


def html(sessions, out):
    """Returns the page; links are relative to the folder of `out`."""
    letters = list(string.ascii_uppercase[:len(sessions)]) if len(sessions) > 1 else [""]
    kept = strips.Strips()
    of_tables = "\n".join(tables.tables(sessions, letters, kept.add))
    body = [head(sessions), answers(sessions, letters), KEY, contents(),
            *(part for name, title, make in FIGURES for part in (f'<h2 id="{name}">{title}</h2>',
                                                                 figures(sessions, letters, make))),
            '<h2 id="cases">Every case</h2>', HOW, of_tables,
            '<h2 id="traces">One round in space and time</h2>',
            *(part for session in sessions for part in trace_files.figures(session)),
            '<h2 id="records">Machine, commands, records</h2>', COMMANDS,
            *(provenance.section(session, letter, out) for session, letter in zip(sessions, letters)),
            f'<script type="application/json" id="strips">{kept.json(again.command)}</script>',
            f"<script>{own('script.js')}</script>"]
    return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, initial-scale=1\">\n<title>Baton: the answer</title>\n"
            f"<style>{own('style.css')}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n")


def own(name):
    """The text of a file of this folder, without the line of its licence, which is not the page's."""
    return (HERE / name).read_text(encoding="utf-8").partition("\n")[2]


def head(sessions):
    machines = list(dict.fromkeys(machine for session in sessions for machine in session.machines[:1]))
    where = words.names(machines, len(machines)) or "a simulated machine"
    return f"<h1>Which exchange is fastest on {words.escaped(where)}?</h1>"


def answers(sessions, letters):
    """The sentences of each session, under their headings."""
    columns = []
    for session, letter in zip(sessions, letters):
        paragraphs = {}
        for one in answer.sentences(session):
            if one.text:
                paragraphs.setdefault(one.heading, []).append(one.text)
        name = f"<h2>{words.escaped(provenance.heading(session, letter))}</h2>" if letter else ""
        told = "".join(paragraph(heading, " ".join(texts)) for heading, texts in paragraphs.items())
        columns.append(f'<div class="answer">{name}{told}</div>')
    return f'<div class="beside">{"".join(columns)}</div>'


def paragraph(heading, text):
    if heading == answer.HEAD:
        return f'<p class="where">{words.escaped(text)}</p>'
    kind = {answer.SIMULATED: "simulated", answer.CERTAINTY: "doubt"}.get(heading, "")
    if heading == answer.FAILED and not text.startswith("Nothing"):
        kind = "lost"
    return f'<p class="{kind}"><b>{words.escaped(heading)}</b> {words.escaped(text)}</p>'


def contents():
    links = [(name, title) for name, title, _ in FIGURES] + [("cases", "Every case"), ("traces", "Traces"),
                                                             ("records", "Machine and records")]
    return "<nav>" + "".join(f'<a href="#{name}">{title}</a>' for name, title in links) + "</nav>"


def figures(sessions, letters, make):
    """The figures of one kind: those of one session in rows, those of several side by side."""
    places = {}
    for letter, session in zip(letters, sessions):
        for key, chart in make(session.contests):
            beside = charts.place(key)
            places.setdefault(key if letter in places.get(beside, ()) else beside, {})[letter] = chart
    order = sorted(places, key=lambda key: importance(key, places[key].values()))
    shown = [side_by_side(places[key], letters) for key in order]
    if not shown:
        return '<p class="note">Nothing to draw: no two points of this kind in the records.</p>'
    grid = "figures" if len(sessions) == 1 else "stack"
    rest = (f'<details><summary>{len(shown) - AT_FIRST} more figures</summary><div class="{grid}">'
            f'{"".join(shown[AT_FIRST:])}</div></details>') if len(shown) > AT_FIRST else ""
    return f'<div class="{grid}">{"".join(shown[:AT_FIRST])}</div>{rest}'


def importance(key, made):
    """Orders figures: what proves nothing comes last, and what has more lines or bars comes before its like."""
    most = max(len(chart.lines if isinstance(chart, lines.Chart) else chart.bars) for chart in made)
    subject = said.importance(key)
    return all(chart.weak for chart in made), subject[:4], -most, subject


def side_by_side(of_letters, letters):
    """The chart of each session in a row with one scale, or the figure alone if there is one session."""
    kind = lines if isinstance(next(iter(of_letters.values())), lines.Chart) else bars
    seconds = [second for chart in of_letters.values() for second in kind.times(chart)]
    made = {letter: kind.figure(chart._replace(title=(f"{letter}: " if letter else "") + chart.title
                                               + " (oversubscribed)" * chart.weak), seconds)
            for letter, chart in of_letters.items()}
    if len(letters) == 1:
        return made[letters[0]]
    # Of two sessions each has its side; of more, only those with this figure are shown.
    shown = [made.get(letter) or EMPTY.format(letter) for letter in letters if letter in made or len(letters) == 2]
    return f'<div class="beside">{"".join(shown)}</div>'


FIGURES = (("sizes", "Time against size", charts.against_size), ("ranks", "Time against ranks", charts.against_ranks),
           ("layers", "Where a layer's time goes", charts.layers))

KEY = ('<p class="key"><span><svg viewBox="0 0 40 12"><path d="M2 6H38" class="solid"/><circle cx="20" cy="6" r="4"/></svg>'
       'measured</span><span><svg viewBox="0 0 40 12"><path d="M2 6H38" class="dashed"/><circle cx="20" cy="6" r="4" '
       'class="open"/></svg>~ simulated</span><span>[ ] 95 % interval over launches</span></p>')

HOW = ('<p class="note">A click on a title sorts, a click on a name shows the rounds of that row by launch and rank. '
       "Rows are ranked within their contest alone: equal in everything but the method. ≈ cannot be told apart from the "
       'fastest.</p><p class="filter"><label>Only rows with <input type="search" id="filter" '
       'placeholder="words, such as zeco 4"></label> <span id="count"></span></p>')

COMMANDS = ("<pre><code>./run bench                        measures again, and writes this page\n"
            "./run report A B --out page.html   this page of other records, or of several side by side\n"
            "./run compare A B                  says whether one of two results is slower</code></pre>")
