# SPDX-License-Identifier: Apache-2.0
"""The contests of the committed records, and what the simulator says of their rows.

Rows of one executor compete, since a topology has one way to start messages. Natives have no steps to simulate.
"""

import collections
import pathlib

from baton import fastest, results
from baton.advise.simulator import simulated
from baton.regret.contests import CALIBRATED, COMPOSED, Judged, judge
from baton.report import choice, sessions
from baton.report.page import again

TREE = pathlib.Path(__file__).resolve().parents[3]
COLLECTIVE, LAYER, MODEL = BENCHES = tuple(results.BENCHES)

# Which contests of a folder are judged on which topology. None was fitted to rows that it judges:
# `--calibrate` measures single messages and kernels. `origin` says whether figures of the topology were
# measured on this machine.
Source = collections.namedtuple("Source", "folder benches executors topology origin")
H100, H200 = "topologies/dgx-h100-8.json", "topologies/h200-4.json"
GPUS = ("peer", "nccl")
SOURCES = (
    Source("h100-2", BENCHES, GPUS, H100, COMPOSED),
    Source("h100-2-bench", BENCHES, GPUS, H100, COMPOSED),
    Source("h200-2", BENCHES, GPUS, H200, COMPOSED),
    Source("h200-4", (COLLECTIVE,), ("peer",), "results/h200-4/calibration-peer.json", CALIBRATED),
    Source("h200-4", (COLLECTIVE,), ("nccl",), "results/h200-4/calibration-nccl.json", CALIBRATED),
    Source("h200-4", (LAYER,), GPUS, H200, CALIBRATED),
    Source("xeon-32", (LAYER,), ("mpi",), "topologies/shared_memory_host.json", COMPOSED))


def contests(source):
    """Yields (contest, executor, rows) of a source, its rows those that a schedule has and that exchange something."""
    found = [contest for session in sessions.every(TREE / "results" / source.folder) for contest in session.contests
             if contest["bench"] in source.benches and is_simulated_too(contest)]
    for contest in found:
        for executor in source.executors:
            rows = [row for row in contest.competitors if row.name.executor == executor and not row.is_native
                    and fastest.exchanges(row.records[-1])]
            if len(rows) > 1:
                yield contest, executor, rows


def is_simulated_too(contest):
    """True if the contest measured what the simulator computes: isolated rounds on a wire that rounds nothing."""
    return choice.competes(contest, simulated=False) and contest["cadence"] == "isolated" and contest.wire == "f32"


def of_source(source, programs):
    """Yields the Judged of a source, simulated by the benches of the folder `programs`."""
    for contest, executor, rows in contests(source):
        found = judge(measured(contest, executor, rows), predicted(contest, executor, rows, source.topology, programs))
        if found:
            yield Judged(source.folder, contest["bench"], pathlib.Path(source.topology).stem, source.origin,
                         name(contest, executor), contest["ranks"], *found)


def name(contest, executor):
    """Returns the records' name of the contest, with the executor in the place of its family."""
    return f"{executor}/{contest.group.contest.partition('/')[2]}"


def label(contest, executor, row):
    return contest.label_of(row).removesuffix(f" on {executor}")


def measured(contest, executor, rows):
    """Returns {label: seconds}."""
    return {label(contest, executor, row): row.median for row in rows}


def predicted(contest, executor, rows, topology, programs):
    """Returns {label: simulated seconds} of the rows that have a time there. A launch of a bench has unlike names."""
    alike = collections.defaultdict(list)
    for row in rows:
        alike[row.name.blocks, row.name.scan].append(row)
    found = {}
    for group in alike.values():
        names = {row.name.name: label(contest, executor, row) for row in group}
        asked = {**group[0].records[-1], "name": ",".join(names), "executor": ""}
        for record in simulated(programs, contest["bench"], TREE / topology, *again.arguments(asked)):
            if results.why_no_time(record) is None:
                found[names[record["name"]]] = record["median_seconds"]
    return found
