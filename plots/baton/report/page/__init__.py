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
from baton.report.comparisons import LINEAR, SCAN
from baton.report.page import cards, provenance, sections, strips

WHICH = {"collective": "Which exchange is fastest", "operator": "Which method is fastest in a layer",
         "model": "Which method is fastest in a model"}

Paragraph = collections.namedtuple("Paragraph", "kind heading text")


def write(out, sessions):
    """Writes the page of these sessions.Session to the file `out`. Throws OSError."""
    out = pathlib.Path(out)
    files.write(out.parent, {out.name: html(sessions, out)})


def html(sessions, out):
    """Returns the page; links are relative to the folder of `out`."""
    letters = list(string.ascii_uppercase[:len(sessions)]) if len(sessions) > 1 else [""]
    rows = strips.Strips()
    below = sections.of_page(sections.Content(sessions, letters, out, rows))
    return pages.made(
        "report/page/sessions.html", title="Baton: the answer", style="report/page/style.css", letters=letters, question=question(sessions),
        between=between.sentence(*sessions) if len(sessions) == 2 else "",
        answers=[{"name": provenance.heading(session, letter) if letter else "", "cards": list(cards.of_session(session)),
                  "paragraphs": paragraphs(session)} for session, letter in zip(sessions, letters)],
        sections=below, strips=markupsafe.Markup(rows.json(rerun_command.command)))


def question(sessions):
    machines = list(dict.fromkeys(machine for session in sessions for machine in session.machines[:1]))
    if all(map(one_gpu.works, sessions)):
        return f"What one GPU can tell: {words.names(machines, len(machines)).removeprefix('1 x ')}"
    where = words.names(machines, len(machines)) or "a simulated machine"
    comparisons = [one.comparison for session in sessions for one in answer.asked(session) if one.comparison] \
        or [each.comparisons[-1] for session in sessions for each in growth.grown(session)]
    if not any(len(one.competitors) > 1 for one in comparisons):
        return f"What does it take on {where}?"
    return f"{which(comparisons)} on {where}?"


def which(comparisons):
    """What these comparisons ask, in the words of a title."""
    benches, kinds = {one["bench"] for one in comparisons}, {one.kind for one in comparisons}
    if len(benches) > 1:
        return "What is fastest"
    first = comparisons[0]
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
