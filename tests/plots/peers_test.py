# SPDX-License-Identifier: Apache-2.0
"""`python3 -m baton peers` with a python3 that says how it was called."""

import os
import stat
import unittest

from plots.example import ROOT, InFolder, run

PYTHON = """#!/bin/sh
# python3: of a machine where the adapter of FlashQLA has a row that is wrong.
echo "$PYTHONPATH $*"
case "$1" in */flash_qla_layer.py) exit 4 ;; */torch_context_parallel.py) [ -z "$KILLED" ] || kill -9 $$ ;; esac
"""


class Peers(InFolder):
    def setUp(self):
        super().setUp()
        (self.folder / "python3").write_text(PYTHON, encoding="utf-8")
        (self.folder / "python3").chmod(stat.S_IRWXU)

    def measure(self, *words, **changes):
        return run("peers", *words, "--package", self.folder / "package", "--out", self.folder / "out",
                   PATH=f"{self.folder}:{os.environ['PATH']}", PYTHONPATH=str(ROOT / "plots"), **changes)

    def test_the_adapters_of_a_layer_run_with_the_package_before_all_else(self):
        done = self.measure("linear", "--tokens", "512", "--heads", "4", "--launches", "2", "--limit", "60")
        self.assertEqual(done.returncode, 0, done.stderr)
        path, adapter, *words = done.stdout.split()
        self.assertEqual(path.split(":"), [str(self.folder / "package"), str(ROOT / "plots")])
        self.assertEqual(adapter, str(ROOT / "docs/examples/adapters/fla_layers.py"))
        self.assertEqual(" ".join(words), "--executor nccl --ranks 1 --dtype bf16 --pass all --tokens 512 --heads 4 --launches 2 "
                         f"--timeout 60 --attention linear --methods local,chunk_gla -J {self.folder}/out/layers.jsonl")

    def test_all_layers_run_and_the_worst_exit_code_is_the_commands(self):
        done = self.measure()
        self.assertEqual(done.returncode, 4, done.stderr)
        adapters = [line.split()[1].rsplit("/", 1)[1] for line in done.stdout.splitlines()]
        self.assertEqual(adapters, ["fla_layers.py"] * 2 + ["flash_qla_layer.py"] + ["fla_layers.py"] * 2 + ["torch_context_parallel.py"])
        self.assertNotIn("--attention softmax", done.stdout)

    def test_a_contest_that_is_killed_is_no_success(self):
        self.assertEqual(self.measure("linear", "softmax", KILLED="1").returncode, 128 + 9)

    def test_adapters_declare_what_contests_name(self):
        from baton.peers import ADAPTERS, LAYERS  # pylint: disable=import-outside-toplevel
        for contests in LAYERS.values():
            for adapter, methods, _ in contests:
                text = (ADAPTERS / adapter).read_text(encoding="utf-8")
                for name in methods.split(","):
                    declared = f'"{name}"' in text or f'declare("{name.removeprefix("context_parallel_")}"' in text
                    self.assertTrue(declared, f"{name} in {adapter}")

    def test_refuses_unknown_layers_and_no_launches_in_one_line(self):
        self.assertIn("unknown layer 'gla'; known: linear, gdn", self.measure("gla").stderr)
        self.assertIn("takes a whole number from 1, not '0'", self.measure("--tokens", "0").stderr)


if __name__ == "__main__":
    unittest.main()
