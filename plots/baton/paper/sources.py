# SPDX-License-Identifier: Apache-2.0
"""The sources of the page: simulated records, the records of every machine, published cells."""

import collections
import pathlib

from baton import files, results
from baton.paper import cells
from baton.paper.published import FOLDER, load_cells
from baton.report import sessions

RESULTS = FOLDER.parent
LOCAL = "local"  # the folder of the records of this checkout, which the page has only if asked

# The papers' rank counts.
PAPER_RANKS = (8, 16, 32, 64, 128, 256)
H100, MANY_H100, A100 = "dgx-h100-32x8", "dgx-h100-2048x8", "dgx-a100-8x8"
A100_PAIR, A10 = "dgx-a100-2x8-100g", "pcie-4xa10"


class Sources:
    """All records and cells: {name of a machine: its records}, {name of a CSV: rows}, and of each machine what other
    projects measured there: lines of peers.jsonl, and {name of a file: text} of outputs kept as they came.

    `measured` has one record of each case, `sessions` has every launch of it: {name of a machine: [sessions.Session]}.    """

    def __init__(self, simulated, measured, published, peers=None, texts=None, sessions=None):
        self.simulated = simulated
        self.measured = measured
        self.published = published
        self.peers = peers or {}
        self.texts = texts or {}
        self.sessions = sessions or {}

    def on(self, topology, **wanted):
        """Returns the simulated records of one topology, timed or skipped."""
        of_topology = [record for record in self.simulated if record["topology"] == topology]
        return having(of_topology, **wanted)

    def here(self, **wanted):
        """Returns [((machine, executor, timing), its records)] of the records that have a time."""
        groups = collections.defaultdict(list)
        for machine, records in self.measured.items():
            for record in having(records, **wanted):
                if results.why_no_time(record) is None:
                    groups[machine, record["executor"], record["cadence"]].append(record)
        return sorted(groups.items())


def having(records, **wanted):
    return [record for record in records if all(record.get(key) == value for key, value in wanted.items())]


def load(simulated, machines, published, with_local=False):
    """Reads the folders of simulations, of the machines' records and of published cells. Throws ResultsError."""
    for folder in (simulated, machines, published):
        if not pathlib.Path(folder).is_dir():
            raise results.ResultsError(f"{folder}: expected a folder")
    found = results.newest(load_folder(simulated))
    if not found:
        raise results.ResultsError(f"{simulated}: no simulated record; ./run paper makes them")
    folders = [folder for folder in sorted(machines.iterdir())
               if folder.is_dir() and folder.resolve() != published.resolve() and (with_local or folder.name != LOCAL)]
    return Sources(
        simulated=[record for record in found if record["executor"] == results.SIMULATOR],
        measured={folder.name: only_measured(load_folder(folder)) for folder in folders},
        published={path.stem: load_cells(path) for path in sorted(published.glob("*.csv"))},
        peers={folder.name: results.load_peers(sorted(folder.glob("*.jsonl"))) for folder in folders},
        texts={folder.name: {path.stem: load_text(path) for path in sorted(folder.glob("*.txt"))}
               for folder in folders},
        sessions={folder.name: sessions.every(folder) for folder in folders if next(folder.glob("*.jsonl"), None)})


def load_text(path):
    try:
        return files.reading(path).read_text(encoding="utf-8")
    except ValueError as error:
        raise results.ResultsError(f"{path}: not UTF-8 text: {error}") from error


def load_folder(folder):
    """Returns the newest record of each case of each file, since every file answers another question."""
    found = sorted(pathlib.Path(folder).glob("*.jsonl"))
    return [record for file in found for record in results.newest(results.load([file]))]


def only_measured(records):
    return [record for record in records if record["executor"] != results.SIMULATOR]


def by(key, records):
    """Returns {value of `key`: record}, preferring the model's blocks and then the newest launch."""
    chosen = {}
    for record in sorted(records, key=lambda one: (chosen_by_model(one), one["time"])):
        chosen[record[key]] = record
    return dict(sorted(chosen.items()))


def chosen_by_model(record):
    """Says whether the model chose the blocks. A collective that does not cut has none to choose."""
    return record.get("blocks_asked") == "auto"


def timed_cells(records, columns, machine=""):
    """Returns one cell for each rank count."""
    found = by("ranks", records)
    return [cells.timed(found.get(ranks), machine) for ranks in columns]


def published_cells(rows, columns, key="gpus", **wanted):
    """Returns one cell for each column, None where nothing was published."""
    found = {str(row[key]): cells.published(row) for row in having(rows, **wanted)}
    return [found.get(str(column)) for column in columns]


def where_measured(machine, executor, timing):
    return ", ".join([machine, executor] + [timing] * (timing != "isolated"))
