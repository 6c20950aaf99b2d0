# SPDX-License-Identifier: Apache-2.0
"""Made-up records for the tests of the package, and a way to run its commands as a user does."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from baton import program
from baton.__main__ import COMMANDS
from baton.upgrade import upgraded

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "plots/baton"
# The programs that BATON_BENCHES names, a line each, by their names.
BENCHES = {pathlib.Path(path).name: path for path in os.environ.get("BATON_BENCHES", "").splitlines()}


class InFolder(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def figure_of(self, records, figure, *arguments):
        """What a figure's command made of these records, in the test's folder."""
        return run_here("figure", figure, "--results", write(self.folder / "r.jsonl", records), "--out", self.folder, *arguments)

    def assert_one_line(self, done, said, status=2):
        """That a program ended with this status and one line that says so."""
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)
        self.assertIn(said, done.stderr)

    def assert_draws_the_same(self, name, draw):
        """That two calls draw a PNG and an SVG, the same both times."""
        done = draw()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG"))
        first = (self.folder / f"{name}.svg").read_text(encoding="utf-8")
        self.assertIn("<svg", first)
        draw()
        self.assertEqual((self.folder / f"{name}.svg").read_text(encoding="utf-8"), first)


def record(name="all_scan", ranks=4, milliseconds=1.0, **changes):
    """One timed record, `milliseconds` its median and mean; `changes` replace or add keys.

    It is as old files have records, without the key `contest`: `read` gives it one after all changes.
    """
    seconds = milliseconds / 1e3
    if "state_bytes" in changes:  # a state of so many heads
        changes = {"heads": changes["state_bytes"] // 65536, **changes}
    return {
        "schema": 1, "bench": "collective", "name": name, "kind": "exclusive_scan",
        "implementation": "schedule", "executor": "mpi", "ranks": ranks, "direction": "forward",
        "heads": 32, "d_k": 128, "d_v": 128,
        "tokens": 8192, "state_bytes": 32 * 128 * 128 * 4, "blocks": 1, "cadence": "isolated", "warmup": 5,
        "rounds": 2, "seconds": [seconds, seconds], "rank_seconds": [[seconds, seconds]] * ranks,
        "mean_seconds": seconds, "median_seconds": seconds, "ci95_seconds": [0.9 * seconds, 1.1 * seconds],
        "sent_bytes": 1, "hops": 1, "bound_seconds": seconds, "wrong": 0,
        "machine": {"cpu": "Example CPU", "cores": 64}, "commit": "abc", "time": "2030-01-01T00:00:00Z",
        "run": "a", **changes}


def on_gpus(name="all_scan_fused", executor="peer", size=2 * 2**20, microseconds=10.0, **changes):
    """One timed exchange on GPUs: an empty round of 4 us, alpha 1 us, beta 1000 GB/s, and so its bound."""
    ranks = changes.get("ranks", 4)
    seen = {"throttle_reasons": [1.0] * ranks}
    return record(name, milliseconds=microseconds / 1e3, **{
        "executor": executor, "ranks": ranks, "implementation": name if name.endswith("fused") else "schedule",
        "state_bytes": size, "heads": size // 65536, "sent_bytes": size, "hops": ranks - 1, "floor_seconds": 4e-6,
        "alpha_seconds": 1e-6, "beta_bytes_per_second": 1e12, "bound_seconds": 4e-6 + (ranks - 1) * 1e-6 + size / 1e12,
        "busbw_bytes_per_second": 1e9, "relative_error": 0.0, "device": {"gpu": "Example GPU", "driver": "1.2"},
        "device_before": seen, "device_after": seen, **changes})


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


def model(name="zeco", line="full", milliseconds=1.0, **changes):
    """One timed record of model_bench."""
    alone = line in ("dp", "split")
    return layer(name, milliseconds=milliseconds, **{
        "bench": "model", "mode": "compute_only" if alone else "overlapped", "scan": "" if alone else "all_scan",
        "line": line, "model": "tiny", "layers": 2, "width": 128, "beside": "", "tokens": 256, "flops_per_token": 1e6,
        "flops_per_pair": 0, "peak_flops": None, "attention": "linear", "dtype": "f32", "case": f"{name}/{line}/model",
        **changes})


def local(**changes):
    return layer("local", mode="compute_only", **{"scan": "", **changes})


def skipped_layer(reason, **changes):
    return untimed(layer(**changes), reason)


def read(records):
    """These records as they are once they are read from a file."""
    return list(map(upgraded, records))


def write(path, records):
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def command(*words):
    """The words that start a command of the package."""
    return [sys.executable, str(PACKAGE), *map(str, words)]


def python(program, *words):
    """The words that run a text as a program which finds the package."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{program}", *words]


def run_here(*words):
    """What a command of the package does, without a process of its own."""
    name, *arguments = map(str, words)
    code, said, complained = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            program.run(name, lambda: importlib.import_module(COMMANDS[name]).main(arguments))
        except SystemExit as end:
            code = end.code or 0
    return subprocess.CompletedProcess(words, code, said.getvalue(), complained.getvalue())


def run(*words, **changes):
    """What a command of the package did as a process; `changes` are variables of its environment."""
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, env={**os.environ, **changes})
