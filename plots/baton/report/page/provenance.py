# SPDX-License-Identifier: Apache-2.0
"""Where the records of a session come from: machine, launches, commits, files."""

import collections
import os
import pathlib
import urllib.parse

from baton import results, words

SAID = (("host", "host"), ("cpu", "processor"), ("cores", "cores"), ("memory_gib", "memory, GiB"), ("system", "system"),
        ("kernel", "kernel"), ("compiler", "compiler"), ("build", "build"), ("mpi", "MPI"))
LESS = 12  # runs that are listed; the others are counted


def section(session, letter, out):
    """Returns the section as HTML; links are relative to the folder of `out`."""
    machines = unique({**record["machine"], "simulated": False} for record in session.measured)
    parts = [f"<h3>{words.escaped(heading(session, letter))}</h3>"]
    lists = [listed([(title, str(machine[key])) for key, title in SAID if machine.get(key)]
                    + [(key, value) for key, value in sorted(machine.get("environment", {}).items())])
             for machine in machines]
    lists += [listed(sorted(device.items())) for device in unique(record["device"] for record in session.measured
                                                                  if record.get("device"))]
    parts.append(f'<div class="beside">{"".join(lists)}</div>')
    topologies = unique(record["topology"] for record in session.records if record["executor"] == results.SIMULATOR)
    if topologies:
        parts.append(f"<p>~ Simulated on: {words.escaped(', '.join(topologies))}.</p>")
    return "".join([*parts, runs(session), files(session, out)])


def heading(session, letter):
    return (f"{letter}: " if letter else "") + f"{session.place}, session {session.name}"


def unique(values):
    """Different values in the order in which they come; they may be dictionaries."""
    kept = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept


def listed(pairs):
    return "<dl>" + "".join(f"<dt>{words.escaped(key)}</dt><dd>{words.escaped(value)}</dd>" for key, value in pairs) + "</dl>"


def runs(session):
    """A line for each run of a bench: when, of which commit, how many launches and cases."""
    found = collections.defaultdict(list)
    for record in session.records:
        found[record["run"], record["commit"]].append(record)
    lines = []
    for (run, commit), records in sorted(found.items()):
        cases = len({(record.get("case"), record["name"]) for record in records})
        launches = len({record.get("launch", 1) for record in records})
        kind = "~ simulated" if records[0]["executor"] == results.SIMULATOR else "measured"
        lines.append(f"<tr><td>{words.escaped(run)}</td><td>{words.escaped(commit)}</td><td>{records[0]['bench']}</td>"
                     f"<td>{kind}</td><td>{launches}</td><td>{cases}</td><td>{words.escaped(records[-1]['time'])}</td></tr>")
    more = f"<p>{len(lines) - LESS} more runs are in the records.</p>" if len(lines) > LESS else ""
    return ('<div class="scroll"><table><thead><tr><th>run</th><th>commit</th><th>bench</th><th>kind</th><th>launches</th>'
            f"<th>cases</th><th>last record</th></tr></thead><tbody>{''.join(lines[-LESS:])}</tbody></table></div>{more}")


def files(session, out):
    place = pathlib.Path(session.place)
    paths = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    links = (f'<li><a href="{link(path, out)}">{words.escaped(path.name)}</a></li>' for path in paths)
    return f"<p>Raw records, appended and never overwritten:</p><ul>{''.join(links)}</ul>"


def link(path, out):
    relative = os.path.relpath(path.resolve(), pathlib.Path(out).resolve().parent)
    return urllib.parse.quote(relative.replace(os.sep, "/"))
