# SPDX-License-Identifier: Apache-2.0
"""Traces of the fastest and of the slowest row of the contests that the answer is about, if there are files of them."""

import json
import pathlib

from baton import files, traces, words
from baton.report import choice
from baton.report.page import again, space_time

HINT = 200  # bytes at a file's beginning that a trace's first key stands in


def figures(session):
    """Yields HTML for each contest: figures, or a line with the commands that leave traces."""
    files = dict(found(session.place))
    for subject, contest, ends in choice.ends(session):
        yield from of_contest(subject, contest, ends, files)


def wanted(session):
    """Yields the program and the arguments of each run that leaves a trace which `figures` shows."""
    for subject, _, ends in choice.ends(session):
        for end, row in ends:
            record = row.records[-1]
            yield again.program(record), again.arguments(record, "--trace", file_of(end, subject))


def file_of(end, subject):
    return f"results/local/{end}_{subject}.json"


def of_contest(subject, contest, ends, files):
    missing = []
    for end, row in ends:
        record = row.records[-1]
        round_of_row = files.get(record.get("case"))
        name = contest.label_of(row)
        if round_of_row:
            yield space_time.figure(round_of_row, f"The {end} {subject}: {name}")
        else:
            missing.append(f"<p>The {end} {subject}, {words.escaped(name)}:</p><pre><code>"
                           + words.escaped(again.command(record, "--trace", file_of(end, subject)))
                           + "</code></pre>")
    if missing:
        yield (f'<div class="missing"><p>No trace of the {words.escaped(contest.label)} is among the records. '
               "These commands leave one, and the next report shows it:</p>" + "".join(missing) + "</div>")


def found(place):
    """Yields (case, traces.Round) of the traces in a folder; of a file of records, those beside it."""
    place = pathlib.Path(place)
    for path in sorted((place if place.is_dir() else place.parent).glob("*.json")):
        if not is_trace(path):
            continue
        try:
            one = traces.load(path)
        except traces.TraceError:
            continue  # a torn file is as good as none
        if one.spans:
            yield one.title["case"], one


def is_trace(path):
    try:
        with open(files.reading(path), encoding="utf-8") as file:
            return '"traceEvents"' in file.read(HINT)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        return False
