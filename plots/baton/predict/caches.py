# SPDX-License-Identifier: Apache-2.0
"""Fits the cache of a host to half of measured rows, and says how far off the other half is predicted.

Rows lie on a board of rank counts, sizes and names. Every other field of it is fitted, as the black ones of a chess
board, and the others are judged. What a row takes is what `collective_bench` simulates with as many blocks.
"""

import collections
import functools
import json
import math
import pathlib
import tempfile

from baton import files, results
from baton.advise.simulator import simulated
from baton.checks import ResultsError
from baton.report import rerun_command

AXES = ("ranks", "state_bytes", "name")
MIB = 2**20
FIRST, STEPS, FINEST = (256.0, 1.0), (2.0, 0.4), 0.05  # bytes in MiB, by a factor, and slowdown

Errors = collections.namedtuple("Errors", "rows typical")


def fit(path, topology, programs):
    """Returns the section `cache` of a topology, whose source says how far off its predictions are. Throws ResultsError."""
    found = Rows(path, topology, programs)
    best = search(lambda candidate: found.errors(candidate, 0).typical)
    section = {"bytes": round(best[0] * MIB), "slowdown": round(best[1], 2)}
    kept = section["bytes"] / MIB, section["slowdown"]
    fitted, judged, before = found.errors(kept, 0), found.errors(kept, 1), found.errors(None, 1)
    section["source"] = (f"bytes, slowdown: fitted to {fitted.rows} measured rows of {path}, every other one by ranks, size "
                         f"and name; they are {fitted.typical:.1%} off, and the {judged.rows} that were not fitted "
                         f"{judged.typical:.1%}, without this section {before.typical:.1%}")
    return section


def search(error):
    """Returns the (MiB, slowdown) whose error is least among its neighbours, by a search in ever smaller steps."""
    error = functools.cache(error)
    best, (factor, step) = FIRST, STEPS
    while step > FINEST / 2:
        around = [(best[0] * factor, best[1]), (best[0] / factor, best[1]), (best[0], best[1] + step),
                  (best[0], max(0.0, best[1] - step))]
        better = min([best, *around], key=error)
        if better == best:
            factor, step = math.sqrt(factor), step / 2
        best = better
    return best


class Rows:
    """Measured rows of exchanges, each with the half that it is in: 0 is fitted, 1 is judged."""

    def __init__(self, path, topology, programs):
        self.topology, self.programs = topology, programs
        rows = [one for one in results.load([path], "collective") if is_simulated_too(one)]
        places = [{value: place for place, value in enumerate(sorted({one[axis] for one in rows}))} for axis in AXES]
        self.halves = [], []
        for one in rows:
            self.halves[sum(known[one[axis]] for known, axis in zip(places, AXES)) % 2].append(one)
        if not all(self.halves):
            raise ResultsError(f"{path}: expected measured exchanges of several sizes on a host, found {len(rows)} rows")

    def errors(self, cache, half):
        """Returns the Errors of a half with a cache of (MiB, slowdown), or without one. Rows of schedules that have
        changed since, and send other bytes, are left out."""
        device = {key: value for key, value in self.topology["device"].items() if key != "cache"}
        if cache:
            device["cache"] = {"bytes": cache[0] * MIB, "slowdown": cache[1], "source": "being fitted"}
        with tempfile.TemporaryDirectory() as folder:
            files.write(pathlib.Path(folder), {"machine.json": json.dumps({**self.topology, "device": device})})
            off = [abs(math.log(simulated_row["median_seconds"] / row["median_seconds"]))
                   for row, simulated_row in pairs(self.halves[half], pathlib.Path(folder) / "machine.json", self.programs)
                   if simulated_row["sent_bytes"] == row["sent_bytes"]]
        if not off:
            raise ResultsError("no row of a schedule that is still the same")
        return Errors(len(off), math.expm1(sum(off) / len(off)))


def is_simulated_too(record):
    return (results.why_no_time(record) is None and record["ranks"] > 1 and record["implementation"] == "schedule"
            and record["executor"] in ("mpi", "tcp") and record["cadence"] == "isolated")


def pairs(rows, topology, programs):
    """Yields each row with its simulated one. A launch of the bench has the rows of one size and as many blocks."""
    alike = collections.defaultdict(list)
    for row in rows:
        alike[row["state_bytes"], row["blocks"]].append(row)
    for (_, blocks), group in alike.items():
        every = {axis: ",".join(sorted({str(row[axis]) for row in group})) for axis in ("name", "ranks")}
        asked = {**group[0], **every, "executor": "", "blocks_asked": "auto"}
        found = simulated(programs, "collective", topology, *rerun_command.arguments(asked, "--blocks", str(blocks)))
        times = {(one["name"], one["ranks"]): one for one in found if results.why_no_time(one) is None}
        yield from ((row, times[key]) for row in group if (key := (row["name"], row["ranks"])) in times)
