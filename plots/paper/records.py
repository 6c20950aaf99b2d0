# SPDX-License-Identifier: Apache-2.0
"""What the page of the papers is made of: simulated records, the records of every machine, published cells."""

import collections
import csv
import pathlib

from lib import results, tables
from paper import cells

RESULTS = tables.PAPER.parent

# Rank counts of the papers, their 8 to 256 GPUs.
PAPER_RANKS = (8, 16, 32, 64, 128, 256)
H100, MANY_H100, A100 = "dgx-h100-32x8", "dgx-h100-2048x8", "dgx-a100-8x8"


class Sources:
    """All records and cells: {name of a machine: its records}, {name of a CSV: rows}, and of each machine what other
    projects measured there: rows of the scripts of peers/, and {name of a file: text} of outputs kept as they came."""

    def __init__(self, simulated, measured, published, peers=None, texts=None):
        self.simulated = simulated
        self.measured = measured
        self.published = published
        self.peers = peers or {}
        self.texts = texts or {}

    def on(self, topology, **wanted):
        """The simulated records of one topology, timed or skipped."""
        of_topology = [record for record in self.simulated if record["topology"] == topology]
        return having(of_topology, **wanted)

    def here(self, **wanted):
        """[(machine, executor, cadence), its measured records] of all machines that have such, timed alone."""
        groups = collections.defaultdict(list)
        for machine, records in self.measured.items():
            for record in having(records, **wanted):
                if results.why_no_time(record) is None:
                    groups[machine, record["executor"], record["cadence"]].append(record)
        return sorted(groups.items())


def having(records, **wanted):
    return [record for record in records if all(record.get(key) == value for key, value in wanted.items())]


def load(simulated, machines, published):
    """Reads folders: the simulations, the machines' records, the published cells. Throws ResultsError."""
    found = results.newest(load_folder(simulated))
    if not found:
        raise results.ResultsError(f"{simulated}: no simulated record; ./run paper makes them")
    folders = [folder for folder in sorted(machines.iterdir())
               if folder.is_dir() and folder.resolve() != published.resolve()]
    return Sources(
        simulated=[record for record in found if record["executor"] == results.SIMULATOR],
        measured={folder.name: only_measured(load_folder(folder)) for folder in folders},
        published={path.stem: load_cells(path) for path in sorted(published.glob("*.csv"))},
        peers={folder.name: results.load_peers(sorted(folder.glob("*.jsonl"))) for folder in folders},
        texts={folder.name: {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))}
               for folder in folders})


def load_folder(folder):
    """Of each file the newest record of each case: a file is a question of its own."""
    files = sorted(pathlib.Path(folder).glob("*.jsonl"))
    return [record for file in files for bench in results.BENCHES
            for record in results.newest(results.load([file], bench))]


def only_measured(records):
    return [record for record in records if record["executor"] != results.SIMULATOR]


def load_cells(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by(key, records):
    """{value of `key`: record}: with the model's blocks if such ran, and of several launches the newest."""
    chosen = {}
    for record in sorted(records, key=lambda one: (chosen_by_model(one), one["time"])):
        chosen[record[key]] = record
    return dict(sorted(chosen.items()))


def chosen_by_model(record):
    """Whether the model chose the blocks; a collective that does not cut has none to choose."""
    return record.get("blocks_asked") == "auto"


def timed_cells(records, columns, machine=""):
    """One cell a column of rank counts."""
    found = by("ranks", records)
    return [cells.timed(found.get(ranks), machine) for ranks in columns]


def published_cells(rows, columns, key="gpus", **wanted):
    """One cell a column; blank where nobody published it."""
    found = {str(row[key]): cells.published(row) for row in having(rows, **wanted)}
    return [found.get(str(column)) for column in columns]


def stamp(records):
    """Commit and day of the newest of these records, for the label of a measured row."""
    newest = max(records, key=lambda record: record["time"])
    return f"commit {newest['commit'].removesuffix('-dirty')[:12]}, {newest['time'][:10]}"


def where_measured(machine, executor, cadence):
    told = f"{machine}, {executor}"
    return told if cadence == "isolated" else f"{told}, {cadence}"
