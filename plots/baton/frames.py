# SPDX-License-Identifier: Apache-2.0
"""Records of the benches, and rows of them.

  read:    every line of the files is checked as `./run compare` checks it; a line that a killed run left half is left out
  frame:   launches   cycles of a case within a launch are one row, whose median is over the rounds of all of them
           rounds     each round of each rank by itself
"""

import glob
import os

from baton import results, schema
from baton.cases import TIMED, Refused, side_of, state_of, worst

ROWS = ("launches", "rounds")


class Error(Exception):
    """What was asked for cannot be read; the text says why, with the file, the line and the key."""


def read(*patterns):
    """The records in all files that the patterns match, as `Records`.

    A pattern is a path, or has the wildcards of `glob`; a folder stands for all its *.jsonl. Raises Error for a pattern
    without a file, and for a line that is no record of this suite.
    """
    paths = [path for pattern in patterns for path in _files(os.fspath(pattern))]
    try:
        return Records(dict(record) for path in paths for record in sorted(results.load([path]), key=lambda one: one["time"]))
    except results.ResultsError as error:
        raise Error(str(error)) from None
    except OSError as error:
        raise Error(f"{error.filename}: {error.strerror}") from None


def _files(pattern):
    if os.path.isdir(pattern):
        pattern = os.path.join(glob.escape(pattern), "*.jsonl")
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise Error(f"{pattern}: there is no such file")
    return found


class Records(list):
    """Records, each a dictionary with the keys of docs/metrics.md."""

    def frame(self, rows="launches"):
        """A pandas.DataFrame with one row for each case and launch, or, for "rounds", for each round and rank.

        Times are seconds. Columns of nested keys are joined by a dot, such as machine.cpu. Raises ImportError without pandas.
        """
        try:
            import pandas  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise ImportError("frame() needs pandas: pip install pandas; rows() gives the same as dictionaries") from None
        return pandas.DataFrame(self.rows(rows))

    def rows(self, rows="launches"):
        """The rows of `frame` as dictionaries, which need no pandas."""
        if rows not in ROWS:
            raise ValueError(f"rows: expected one of {', '.join(ROWS)}, found {rows!r}")
        if not self:
            return []
        try:
            cases = side_of(self, "these records").cases
        except Refused as refused:
            raise Error(str(refused)) from None
        make = launch_rows if rows == "launches" else round_rows
        return [row for name, case in cases.items() for row in make(name, case)]


def launch_rows(name, case):
    """One row for each launch of a case: the keys of its last cycle, without lists, and what all cycles say."""
    medians = case.medians()
    for launch, cycles in case.launches.items():
        records = list(cycles.values())
        yield {**_flat(records[-1]), "case": name, "run": launch[0], "launch": launch[1], "cycles": len(records),
               "state": worst(records), "median_seconds": medians.get(launch)}


def round_rows(name, case):
    """One row for each round and rank of the cycles that were timed. Without times of ranks, the rank is None."""
    for (run, launch), cycles in case.launches.items():
        for cycle, record in cycles.items():
            if state_of(record) != TIMED:
                continue
            ranks = record.get("rank_seconds") or [record["seconds"]]
            for rank, rounds in enumerate(ranks):
                for number, seconds in enumerate(rounds):
                    yield {"case": name, "run": run, "launch": launch, "cycle": cycle, "round": number,
                           "rank": rank if "rank_seconds" in record else None, "seconds": seconds}


def _flat(record, prefix=""):
    """The keys of a record that have one value each. An interval becomes two: its low and its high end."""
    row = {}
    for key, value in record.items():
        if isinstance(value, dict):
            row.update(_flat(value, f"{prefix}{key}."))
        elif schema.FIELDS.get(prefix + key, {}).get("type") == "interval":
            low, high = value if isinstance(value, list) else (None, None)
            row.update({f"{prefix}{key}.low": low, f"{prefix}{key}.high": high})
        elif not isinstance(value, list):
            row[prefix + key] = value
    return row

