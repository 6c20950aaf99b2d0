# SPDX-License-Identifier: Apache-2.0
"""Traces of the fastest and of the slowest row of the comparisons that the answer is about, if there are files of them."""

import collections
import json
import pathlib

from baton import files, style, traces
from baton.report import axes, choice, rerun_command, trace_runs
from baton.report.page import space_time
from baton.report.page.sections import Section

# The figures of a comparison, and (title, command) of those that are not there.
OfComparison = collections.namedtuple("OfComparison", "comparison figures missing")

MOST_MESSAGES = 300  # that are drawn
HINT = 200  # bytes at a file's beginning that a trace's first key stands in


def of_comparisons(session):
    """Yields an OfComparison for each comparison that the answer is about."""
    rounds = dict(found(session.path))
    for subject, comparison, ends in choice.ends(session):
        figures, missing = [], []
        for end, row in ends:
            record, title = row.records[-1], f"The {subject} with the {MEDIANS[end]} median: {comparison.label_of(row)}"
            if record.get("case") in rounds:
                figures.append(figure(rounds[record["case"]], title))
            else:
                missing.append((title.replace(":", ",", 1), rerun_command.command(record, "--trace", trace_runs.file_of(end, subject))))
        yield OfComparison(axes.heading(comparison), figures, missing)


MEDIANS = {"fastest": "lowest", "slowest": "highest"}


def figure(one, title):
    """The space-time diagram of a traces.Round."""
    simulated = " Simulated." if one.title["executor"] == "simulator" else ""
    many = f" {MOST_MESSAGES} of {len(one.messages)} messages are drawn." if len(one.messages) > MOST_MESSAGES else ""
    caption = (f"One round, no statistic.{simulated} Arrows are messages, from their send's start to their receive's finish."
               f"{many} {one.title['case']}, commit {one.title['commit']}.")
    return {"title": title, "caption": caption,
            "svg": style.inlined(space_time.draw(one, titles=False, most_messages=MOST_MESSAGES), title)}


def found(path_of_records):
    """Yields (case, traces.Round) of the traces in a folder; of a file of records, those beside it."""
    records = pathlib.Path(path_of_records)
    for path in sorted((records if records.is_dir() else records.parent).glob("*.json")):
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


SECTIONS = (Section(5, "traces", "Traces", "One round in space and time", "report/page/traces.html",
                    lambda page: [one for session in page.sessions for one in of_comparisons(session)]),)
