# SPDX-License-Identifier: Apache-2.0
"""Flags of Google Benchmark; run by command_line_test.py."""

import json
import tempfile
import unittest

from benches import SMALL, run


class GoogleBenchmarkFlags(unittest.TestCase):
    def test_filter_and_list(self):
        ended = run("--ranks", "2", "--benchmark_list_tests=true", "--benchmark_filter=two_shot")
        self.assertEqual([line.split("/")[0] for line in ended.stdout.split()], ["two_shot"])

    def test_out_is_written_by_rank_0(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/x.json"
            ended = run("--ranks", "2", "--collectives", "all_scan", *SMALL, "--benchmark_out=" + path)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                self.assertEqual(json.load(file)["benchmarks"][0]["iterations"], 3)
