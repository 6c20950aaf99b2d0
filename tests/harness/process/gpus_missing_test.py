# SPDX-License-Identifier: Apache-2.0
"""The benches of preset cuda on machines that lack what they would need: one clear line, or rows that say why.

    gpus_missing_test.py COLLECTIVE_BENCH
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop(1)


def run(*arguments, gpus=""):
    """The bench on so many of this machine's GPUs, "" for none of them."""
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES=gpus)
    return subprocess.run([BENCH, *arguments], env=environment, capture_output=True, text=True, timeout=120,
                          check=False)


class WithoutGpu(unittest.TestCase):
    def test_nothing_but_a_gpu_asked_for_is_one_line_and_exit_2(self):
        for executor in ("nccl", "peer"):
            ended = run("--executor", executor, "--collectives", "all_scan", "--ranks", "2")
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertRegex(ended.stderr, rf"^baton: executor {executor} cannot run: no GPU here[^\n]*\n$")
            self.assertEqual(ended.stdout, "")

    def test_beside_what_runs_its_rows_say_why_not(self):
        ended = run("--executor", "mpi,nccl", "--collectives", "all_scan", "--ranks", "2", "-b", "64K", "-n", "3")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        rows = [line for line in ended.stdout.splitlines() if line.startswith("all_scan ")]
        self.assertEqual(len(rows), 2, ended.stdout)
        self.assertNotIn("skipped", rows[0])
        self.assertRegex(rows[1], "nccl .* skipped: no GPU here")

    def test_nccl_shares_no_gpu(self):
        ended = run("--executor", "nccl", "--collectives", "all_scan", "--ranks", "2", "--ranks-per-gpu", "2")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertRegex(ended.stderr, r"^baton: executor nccl cannot run: NCCL takes one rank a GPU[^\n]*\n$")

    def test_the_list_says_what_is_missing(self):
        listed = run("--list").stdout
        self.assertRegex(listed, r"\n  nccl +.*; not now: no GPU here")
        self.assertRegex(listed, r"\n  mpi +[^\n;]*\n")

    def test_a_processor_records_no_graphs(self):
        ended = run("--executor", "mpi", "--collectives", "all_scan", "--ranks", "2", "-b", "64K", "--cadence", "graph")
        self.assertEqual(ended.returncode, 6, ended.stderr)
        self.assertIn("skipped: mpi records no graphs", ended.stdout)


class WithOneGpu(unittest.TestCase):
    def setUp(self):
        if "not now" in next(line for line in run("--list", gpus="0").stdout.splitlines() if line.startswith("  nccl ")):
            self.skipTest("no GPU here")

    def test_two_ranks_on_it_are_one_line_and_exit_2(self):
        ended = run("--executor", "nccl", "--collectives", "all_scan", "--ranks", "2", gpus="0")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("2 ranks on this host need a GPU each, and it has 1\n", ended.stderr)

    def test_three_ranks_that_share_it_are_right_and_measure_no_link(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run("--executor", "peer,peer_bf16", "--collectives", "all_scan,all_gather_scan,two_shot", "--ranks",
                        "3", "--ranks-per-gpu", "3", "-b", "64K", "-w", "1", "-n", "3", "-J", path, gpus="0")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("3 ranks, up to 3 on a GPU by turns", ended.stdout)
            with open(path) as file:
                records = [json.loads(line) for line in file]
        self.assertEqual(len(records), 6)
        for record in records:
            self.assertEqual((record["ranks_per_gpu"], record["bound_seconds"], record["wrong"]), (3, None, 0), record)
            self.assertIn("/ranks_per_gpu:3/", record["case"])

    def test_ranks_that_it_has_no_place_for_are_one_line(self):
        ended = run("--executor", "peer", "--collectives", "all_scan", "--ranks", "3", "--ranks-per-gpu", "2", gpus="0")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("3 ranks on this host, 2 a GPU, need more GPUs than it has: 1\n", ended.stderr)


if __name__ == "__main__":
    unittest.main()
