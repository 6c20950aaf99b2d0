# SPDX-License-Identifier: Apache-2.0
"""One side of a comparison: its records, gathered by case and launch.

A launch is a pair of the keys `run` and `launch`; records without `launch` count one launch a run. The number of a
launch is the median over its rounds, those of all cycles together.
"""

import collections
import functools
import pathlib
import statistics

from baton import estimates, results

TIMED, SKIPPED, WRONG, FAILED = "timed", "skipped", "wrong", "failed"


class Refused(results.ResultsError):
    """What was given must not be compared; the text says why."""


class Case:
    """The records of one case on one side, launch by launch."""

    def __init__(self):
        self.cycles = {}  # cycle: {launch: record}

    def add(self, record):
        # A case that a later line of the same launch repeats was run again.
        self.cycles.setdefault(record.get("cycle", 0), {})[launch_of(record)] = record

    @property
    def launches(self):
        """{launch: {cycle: record}}"""
        found = {}
        for cycle, records in self.cycles.items():
            for launch, record in records.items():
                found.setdefault(launch, {})[cycle] = record
        return found

    @property
    def records(self):
        """Those of each launch together, the launches in the order of their first records."""
        if len(self.cycles) == 1:
            return list(next(iter(self.cycles.values())).values())
        return [record for cycles in self.launches.values() for record in cycles.values()]

    @property
    def state(self):
        """The worst that happened to the case in any launch; skipped only if it was timed in none."""
        return worst(self.records)

    @property
    def reason(self):
        """Why the state is not TIMED, or an empty text."""
        state = self.state
        record = next(record for record in self.records if state_of(record) == state)
        if state == WRONG:
            return results.wrong_in_words(record)
        return {FAILED: record.get("failed"), SKIPPED: record.get("skipped")}.get(state) or ""

    @property
    def is_exact(self):
        """True if its times are computed, so that they are the same at every run."""
        return all(record["executor"] == results.SIMULATOR for record in self.records)

    def medians(self):
        """Returns {launch: seconds} of the launches that were timed."""
        if len(self.cycles) == 1:
            return {launch: statistics.median(record["seconds"]) for launch, record in next(iter(self.cycles.values())).items()
                    if state_of(record) == TIMED}
        rounds = {launch: [second for record in cycles.values() if state_of(record) == TIMED
                           for second in record["seconds"]] for launch, cycles in self.launches.items()}
        return {launch: statistics.median(seconds) for launch, seconds in rounds.items() if seconds}

    def values(self, key):
        """Returns the different values of a key, in the order of the records that have it."""
        return list(dict.fromkeys(str(record[key]) for record in self.records if record.get(key) is not None))

    def mean_of(self, key):
        """Returns the estimate of a positive number over the records that have it, or None."""
        numbers = [record[key] for record in self.records if isinstance(record.get(key), (int, float)) and record[key] > 0]
        return estimates.mean(numbers) if numbers else None


# One side: its cases by name, the files they came from, and the launches by the pair that they belong to.
Side = collections.namedtuple("Side", "cases files pairs")


def read(path):
    """Reads a file of records, or all *.jsonl of a folder. Throws Refused and results.ResultsError."""
    path = pathlib.Path(path)
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise Refused(f"{path}: no *.jsonl in this folder")
    return side_of(results.load(files), path)


def side_of(records, path):
    """The side that these records make; `path` says where they are from. Throws Refused."""
    cases, pairs = collections.defaultdict(Case), {}
    for record in records:
        cases[key_of(record, path)].add(record)
        if "pair" in record:
            pairs[launch_of(record)] = record["pair"]
    if not cases:
        raise Refused(f"{path}: no records of this suite")
    return Side(dict(cases), path, pairs)


def without(side, names):
    """The side without these cases."""
    return side._replace(cases={name: case for name, case in side.cases.items() if name not in set(names)})


def key_of(record, path):
    """The name that joins a case of two sides. Throws Refused for records from before they had one."""
    if "case" not in record:
        raise Refused(f"{path}: records of commit {record.get('commit')} have no key 'case', and nothing else tells it; measure them anew")
    parts = [record["case"]]
    if record.get("scan"):
        parts.append(f"scan:{record['scan']}")
    if record["executor"] == results.SIMULATOR:
        parts.append(f"on:{record['topology']}")
    return "/".join(parts)


def launch_of(record):
    return _pair(record["run"], record.get("launch", 1))


@functools.lru_cache(maxsize=4096)
def _pair(run, launch):
    """The same pair for all cases of a launch."""
    return run, launch


def worst(records):
    """The worst state of some records; SKIPPED only if all of them were."""
    states = set(map(state_of, records))
    return next(state for state in (FAILED, WRONG, TIMED, SKIPPED) if state in states)


def state_of(record):
    if "failed" in record:
        return FAILED
    if "skipped" in record:
        return SKIPPED
    if record.get("wrong"):
        return WRONG
    return TIMED if record.get("seconds") else SKIPPED
