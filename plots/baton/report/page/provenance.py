# SPDX-License-Identifier: Apache-2.0
"""Where the records of a session come from: machine, launches, commits, files."""

import collections
import os
import pathlib
import urllib.parse

from baton import results, schema
from baton.report.page.sections import Section

TITLES = {"cpu": "processor", "memory_gib": "memory, GiB", "mpi": "MPI"}
MOST_RUNS = 12  # that are listed; the others are counted
MOST_PAGES = 20  # that a page links to


def records(page):
    """What the page says of the machines and the records of its sessions, and which pages are beside it."""
    return {"beside": beside(page.out), "sources": [section(session, letter, page.out) for session, letter in zip(page.sessions, page.letters)]}


def beside(out):
    """The names of the other pages in the folder of `out`, the newest first."""
    others = [path for path in pathlib.Path(out).parent.glob("*.html") if path.name != pathlib.Path(out).name]
    return [path.name for path in sorted(others, key=lambda path: -path.stat().st_mtime)][:MOST_PAGES]


def section(session, letter, out):
    """Returns what the page says of a session; links are relative to the folder of `out`."""
    machines = unique({**record["machine"], "simulated": False, "settings": None} for record in session.measured)
    settings = unique(one for record in session.measured for one in (record["machine"].get("settings") or {}).items())
    devices = unique(record["device"] for record in session.measured if record.get("device"))
    return {"heading": heading(session, letter),
            "machines": [*map(facts_of, machines), *([sorted(settings)] if settings else []),
                         *(sorted(device.items()) for device in devices)],
            "topologies": unique(record["topology"] for record in session.records if record["executor"] == results.SIMULATOR),
            "runs": list(runs(session)), "most_runs": MOST_RUNS, "files": list(files(session, out))}


def facts_of(machine):
    facts = [(TITLES.get(key, key), str(machine[key])) for key in schema.parts("machine")
            if machine.get(key) and key != "environment"]
    return facts + sorted(machine.get("environment", {}).items())


def heading(session, letter):
    return (f"{letter}: " if letter else "") + f"{session.path}, session {session.name}"


def unique(values):
    """Different values in the order in which they come; they may be dictionaries."""
    kept = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept


def runs(session):
    """Yields a line for each run of a bench: when, of which commit, how many launches and cases."""
    found = collections.defaultdict(list)
    for record in session.records:
        found[record["run"], record["commit"]].append(record)
    for (run, commit), records in sorted(found.items()):
        cases = len({(record.get("case"), record["name"]) for record in records})
        launches = len({record.get("launch", 1) for record in records})
        kind = "~ simulated" if records[0]["executor"] == results.SIMULATOR else "measured"
        yield run, commit, records[0]["bench"], kind, launches, cases, records[-1]["time"]


def files(session, out):
    """Yields (name, link) of each file of records."""
    records = pathlib.Path(session.path)
    for path in sorted(records.glob("*.jsonl")) if records.is_dir() else [records]:
        yield path.name, link(path, out)


def link(path, out):
    relative = os.path.relpath(path.resolve(), pathlib.Path(out).resolve().parent)
    return urllib.parse.quote(relative.replace(os.sep, "/"))


SECTIONS = (Section(6, "records", "Machine and records", "Machine, commands, records", "report/page/records.html", records),)
