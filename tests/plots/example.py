# SPDX-License-Identifier: Apache-2.0
"""Made-up records for the tests of plots/, and a way to run its programs as a user does."""

import json
import pathlib
import subprocess
import sys

PLOTS = pathlib.Path(__file__).resolve().parents[2] / "plots"
sys.path.insert(0, str(PLOTS))


def record(name="all_scan", ranks=4, milliseconds=1.0, **changes):
    """One timed record, `milliseconds` its median and mean; `changes` replace or add keys."""
    seconds = milliseconds / 1e3
    return {
        "schema": 1, "bench": "collective", "name": name, "kind": "exclusive_scan",
        "implementation": "schedule", "executor": "mpi", "ranks": ranks, "direction": "forward",
        "heads": 32, "d_k": 128, "d_v": 128,
        "tokens": 8192, "state_bytes": 32 * 128 * 128 * 4, "blocks": 1, "cadence": "isolated", "warmup": 5,
        "rounds": 2, "seconds": [seconds, seconds], "rank_seconds": [[seconds, seconds]] * ranks,
        "mean_seconds": seconds, "median_seconds": seconds, "ci95_seconds": [0.9 * seconds, 1.1 * seconds],
        "sent_bytes": 1, "hops": 1, "bound_seconds": seconds, "wrong": 0,
        "machine": {"cpu": "Example CPU", "cores": 2}, "commit": "abc", "time": "2030-01-01T00:00:00Z",
        "run": "a", **changes}


def skipped(reason, **changes):
    return untimed(record(**changes), reason)


def untimed(made, reason):
    timings = ("seconds", "rank_seconds", "mean_seconds", "median_seconds", "ci95_seconds")
    return {**{key: value for key, value in made.items() if key not in timings}, "skipped": reason}


def layer(name="zeco", which="both", mode="overlapped", milliseconds=1.0, **changes):
    """One timed record of operator_bench, `which` its pass."""
    operator = {"bench": "operator", "pass": which, "mode": mode, "gate": "vector", "gates": "layer",
                "chunk": 64, "groups": 1, "scan": "all_scan", "heads": 4, "tokens": 1024, "hidden": None,
                "relative_error": 1e-7}
    made = record(name, milliseconds=milliseconds, **{**operator, **changes})
    del made["kind"]
    return made


def local(**changes):
    return layer("local", mode="compute_only", **{"scan": "", **changes})


def skipped_layer(reason, **changes):
    return untimed(layer(**changes), reason)


def write(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def run(program, *arguments):
    return subprocess.run([sys.executable, PLOTS / program, *map(str, arguments)], capture_output=True,
                          text=True, check=False)
