# SPDX-License-Identifier: Apache-2.0
"""Sessions: what one `./run bench` measured and simulated. Records of different sessions are never mixed.

Records from before the key `session` make one session for each commit and host, and each of its runs is a launch.
"""

import collections
import functools
import pathlib

from baton import cases, results
from baton.report import axes, comparisons


ALL = "all"  # the name that asks for every session


class Session:
    """The records of one session: `name` as --session takes it, `path` the file or folder that they come from, `others`
    the names of sessions there that nobody asked for, and `interrupted` whether it ended before its time."""

    def __init__(self, name, path, records):
        self.name, self.path, self.records, self.others, self.interrupted = name, path, records, [], False

    @functools.cached_property
    def comparisons(self):
        return axes.note_differences(comparisons.comparisons_of(self.records))

    @property
    def newest(self):
        """The time of the last record, in UTC."""
        return max(record["time"] for record in self.records)

    @property
    def measured(self):
        return [record for record in self.records if record["executor"] != results.SIMULATOR]

    @property
    def commits(self):
        return self._values(record["commit"] for record in self.records)

    @property
    def machines(self):
        """What measured: GPUs with their number before processors; empty if all of it was simulated."""
        gpus = [f"{record['device'].get('gpus', record['ranks'])} x {results.machine_of(record)}"
                for record in self.measured if record.get("device")]
        return self._values([*gpus, *(record["machine"].get("cpu", "unknown machine") for record in self.measured)])

    @property
    def cores(self):
        """The most cores that a measured record states, or None."""
        return max((record["machine"]["cores"] for record in self.measured if "cores" in record["machine"]),
                   default=None)

    @property
    def launches(self):
        """The most launches that any case of the session has."""
        return max((len(row.launches) for comparison in self.comparisons for row in comparison.rows
                    if not row.is_simulated), default=0)

    @staticmethod
    def _values(values):
        return list(dict.fromkeys(values))


def read(paths, wanted=None):
    """Returns the newest session of each path, or all that are named `wanted`, or ALL, in the order of the paths.

    A path is a file of records, a folder with *.jsonl, or a folder of such folders. Throws cases.Refused and
    results.ResultsError.
    """
    found = [session for path in paths for folder in folders_of(path) for session in chosen(folder, wanted)]
    if not found:
        hint = f"no records of session '{wanted}'" if wanted else "no records of this suite"
        raise cases.Refused(f"{', '.join(map(str, paths))}: {hint}")
    return found


def folders_of(path):
    """Yields the path itself if it is a file or has *.jsonl, else the folders below it that have some."""
    path = pathlib.Path(path)
    if not path.is_dir() or next(path.glob("*.jsonl"), None):
        return [path]
    return sorted({path.parent for path in path.rglob("*.jsonl")})


def chosen(path, wanted):
    """Returns the sessions of one file or folder that --session asks for: those of this name, all, or the newest one."""
    sessions = every(path)
    if wanted:
        return [session for session in sessions if wanted in (session.name, ALL)]
    if not sessions:
        return []
    *others, newest = sorted(sessions, key=lambda session: session.newest)
    newest.others = [session.name for session in reversed(others)]
    return [newest]


def every(path):
    """Returns all sessions of one file or folder, in the order of their first records."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    found = collections.defaultdict(list)
    for record in results.load(files):
        found[session_of(record)].append(record)
    return [Session(name, path, records) for name, records in found.items()]


def session_of(record):
    """The name of the record's session. An unknown commit equals no other, so each of its runs is one."""
    build = record["run"] if record["commit"] == "unknown" else record["commit"]
    return record.get("session") or f"{build} on {record['machine'].get('host', 'unknown host')}"
