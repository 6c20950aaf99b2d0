# SPDX-License-Identifier: Apache-2.0
"""What every generated case must keep to, and the cases whose input is a file: topologies and records.

Run by command_line_odd_test.py.
"""

import concurrent.futures
import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

from benches import BENCH, TOPOLOGIES
from odd_words import SMALL, odd_records, odd_topology

from baton import program
from plots import example

SEED = int(os.environ.get("BATON_SEED", "12"))
MACHINES, RECORDS = 90, 100
SECONDS = 600  # that a case may take, on a busy machine too
LONGEST_LINE = 260


def words_of(flags):
    return [word for flag in flags.items() for word in flag]


class Generated(unittest.TestCase):
    longMessage = True

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def all(self, cases, check):
        """Runs cases, two at once; `check` gets each with its process."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case, ended in zip(cases, pool.map(lambda case: bench(*case[0]), cases)):
                with self.subTest(seed=SEED, arguments=[cut(word) for word in case[0]]):
                    check(case, ended)

    def assert_one_line(self, ended, names, codes=(2,)):
        """That it ended with one of these codes and one clear line with one of these names."""
        error = ended.stderr.decode("utf-8")  # which throws if it is none
        self.assertIn(ended.returncode, codes, error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("baton: ") and error.endswith("\n"), error)
        self.assertLessEqual(len(error), LONGEST_LINE, error)
        self.assertFalse([letter for letter in error[:-1] if ord(letter) < 32 or 127 <= ord(letter) < 160], repr(error))
        self.assertTrue(any(name in error for name in names), f"{error} names none of {names}")
        self.assertEqual(ended.stdout, b"")

    def assert_whole(self, path, least=1):
        """That the file has so many records or more, each with times or a reason."""
        lines = path.read_bytes().split(b"\n")
        self.assertEqual(lines.pop(), b"")
        records = [json.loads(line) for line in lines]
        self.assertGreaterEqual(len(records), least)
        for record in records:
            if "skipped" in record:
                self.assertTrue(record["skipped"])
                continue
            self.assertEqual(record["wrong"], 0)
            times = [*record["seconds"], *record["ci95_seconds"], record["median_seconds"], record["mean_seconds"]]
            self.assertTrue(all(is_time(time) for time in times), times)
            rates = {key: value for key, value in record.items() if key.endswith("per_second")}
            self.assertTrue(all(value is not None and math.isfinite(value) for value in rates.values()), rates)
        return records


def is_time(value):
    return value is not None and math.isfinite(value) and value >= 0


def cut(word):
    word = str(word)
    return word if len(word) < 200 else f"{word[:60]}... ({len(word)})"


def bench(*arguments, program=BENCH, **options):
    return subprocess.run([program, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS,
                          check=False, **options)


class Machines(Generated):
    def test_topologies(self):
        cases = []
        for number in range(MACHINES):
            machine, path = self.folder / f"{number}.json", self.folder / f"{number}.jsonl"
            machine.write_bytes(odd_topology(self.random, TOPOLOGIES))
            cases.append(([*words_of({**SMALL, "--executor": "simulator", "--collectives": "all_scan,two_shot",
                                      "--ranks": self.random.choice("124")}),
                           "--topology", machine, "-J", path, "--baseline", "two_shot"], machine, path))
        self.all(cases, self.check_machine)

    def check_machine(self, case, ended):
        _, machine, path = case
        if ended.returncode == 2:
            return self.assert_one_line(ended, [machine.name, "--topology", "ranks do not fit"])
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        self.assertIsNone(re.search(rb"\b(nan|inf)\b", ended.stdout.lower()), ended.stdout)
        return self.assertEqual(len(self.assert_whole(path)), 2)


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class Records(Generated):
    """In this process: a new one for each figure would take a second."""

    def test_readers_of_records(self):
        figures = figures_with_records()
        for number in range(RECORDS):
            name = self.random.choice(list(figures))
            path, out = self.folder / "records.jsonl", self.folder / "out"
            path.write_bytes(odd_records(self.random, figures[name]))
            with self.subTest(seed=SEED, number=number, figure=name, records=cut(path.read_bytes())):
                self.check_figure(name, path, out)

    def check_figure(self, name, path, out):
        errors, printed = io.StringIO(), io.StringIO()
        code = 0
        try:
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(printed):
                from baton.report import figure  # needs matplotlib
                program.run("figure", lambda: figure.main([name, "--results", str(path), "--out", str(out)]))
        except SystemExit as end:
            code = end.code
        lines = [line for line in errors.getvalue().splitlines() if not line.endswith("not a whole record, left out")]
        self.assertIn(code, (0, 2), lines)
        self.assertEqual(len(lines), code // 2, lines)
        self.assertTrue(all(path.name in line for line in lines), lines)
        self.assertFalse([file.name for file in out.glob(".*.part")])
        if code == 0:
            self.assertTrue(printed.getvalue().startswith("Figure: "), printed.getvalue())


def figures_with_records():
    """Returns {figure: good records}."""
    scans = [example.record(name, ranks=ranks) for name in ("all_scan", "ring_scan") for ranks in (2, 4, 8)]
    exchanges = [example.on_gpus(name, executor, size) for name, executor in (
        ("all_scan_fused", "peer"), ("nccl_all_gather_scan", "nccl")) for size in (1 << 20, 1 << 24)]
    layers = [example.layer(name, ranks=2, mode=mode) for name in ("zeco", "lasp1") for mode in (
        "overlapped", "exposed", "compute_only")] + [example.local(ranks=2)]
    return {"ranks": scans, "sizes": exchanges, "layers": layers}
