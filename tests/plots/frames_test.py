# SPDX-License-Identifier: Apache-2.0
"""Records from Python: python3 -m unittest; frames are looked at where pandas is."""

import importlib.util
import unittest

import baton
from plots.example import InFolder, write

RECORD = {"schema": 1, "case": "all_scan/tcp/ranks:2/", "bench": "collective", "name": "all_scan", "kind": "exclusive_scan",
          "direction": "forward", "heads": 1, "d_k": 4, "d_v": 2, "tokens": 8, "implementation": "schedule", "executor": "tcp",
          "ranks": 2, "state_bytes": 32, "blocks": 1, "cadence": "isolated", "cycle": 0, "warmup": 1, "rounds": 3, "wrong": 0,
          "seconds": [3e-6, 2e-6, 4e-6], "rank_seconds": [[3e-6, 1e-6, 4e-6], [2e-6, 2e-6, 1e-6]], "mean_seconds": 3e-6,
          "median_seconds": 3e-6, "ci95_seconds": [2e-6, 4e-6], "ratio_ci95": None, "machine": {"cpu": "a processor", "cores": 2},
          "commit": "c0ffee", "time": "2026-01-31T12:00:00Z", "run": "one", "launch": 1}


class Reading(InFolder):
    def write(self, name, *changes):
        return write(self.folder / name, [{**RECORD, **change} for change in changes])

    def test_patterns_paths_and_folders(self):
        first = self.write("a.jsonl", {}, {"launch": 2})
        self.write("b.jsonl", {"run": "two"})
        for patterns, count in (((first,), 2), ((f"{self.folder}/*.jsonl",), 3), ((self.folder,), 3), ((first, first), 4)):
            self.assertEqual(len(baton.read(*patterns)), count)

    def test_errors_name_the_place(self):
        with self.assertRaisesRegex(baton.Error, "no_such.*: there is no such file"):
            baton.read(self.folder / "no_such.jsonl")
        path = self.write("a.jsonl", {}, {"median_seconds": "soon"})
        with self.assertRaisesRegex(baton.Error, r"a\.jsonl:2: median_seconds"):
            baton.read(path)
        with self.assertRaisesRegex(ValueError, "expected one of launches, rounds, found 'ranks'"):
            baton.Records().rows("ranks")

    def test_a_row_for_each_case_and_launch(self):
        records = baton.read(self.write("a.jsonl", {}, {"cycle": 1, "seconds": [9e-6]}, {"launch": 2}, {"case": "other"}))
        rows = records.rows()
        self.assertEqual([(row["case"], row["launch"], row["cycles"]) for row in rows],
                         [("all_scan/tcp/ranks:2/", 1, 2), ("all_scan/tcp/ranks:2/", 2, 1), ("other", 1, 1)])
        self.assertAlmostEqual(rows[0]["median_seconds"], 3.5e-6)  # over the rounds of both cycles
        self.assertEqual((rows[1]["machine.cpu"], rows[1]["ci95_seconds.low"], rows[1]["ratio_ci95.high"]),
                         ("a processor", 2e-6, None))
        self.assertNotIn("seconds", rows[0])

    def test_rows_say_why_there_is_no_time(self):
        failed = {"launch": 2, "failed": "rank 1 died", "seconds": []}
        records = baton.read(self.write("a.jsonl", {}, failed, {"launch": 3, "wrong": 4}))
        rows = records.rows()
        self.assertEqual([row["state"] for row in rows], ["timed", "failed", "wrong"])
        self.assertEqual([row["median_seconds"] is None for row in rows], [False, True, True])
        self.assertEqual({row["launch"] for row in records.rows("rounds")}, {1})

    def test_a_row_for_each_round_and_rank(self):
        bare = {key: value for key, value in RECORD.items() if key != "rank_seconds"}
        path = self.write("a.jsonl", {})
        write(self.folder / "b.jsonl", [{**bare, "case": "simulated"}])
        rows = baton.read(path).rows("rounds")
        self.assertEqual(len(rows), 6)
        self.assertEqual([(row["round"], row["rank"], row["seconds"]) for row in rows][3:5], [(0, 1, 2e-6), (1, 1, 2e-6)])
        self.assertEqual({row["rank"] for row in baton.read(self.folder / "b.jsonl").rows("rounds")}, {None})

    def test_no_records_make_no_rows(self):
        self.assertEqual(baton.Records().rows(), [])

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "no pandas here")
    def test_frames(self):
        records = baton.read(self.write("a.jsonl", {}, {"launch": 2}))
        self.assertEqual(records.frame().shape[0], 2)
        slowest = records.frame("rounds").groupby(["launch", "round"]).seconds.max()
        self.assertEqual(slowest.tolist(), 2 * RECORD["seconds"])

    @unittest.skipIf(importlib.util.find_spec("pandas"), "pandas is here")
    def test_frames_need_pandas(self):
        with self.assertRaisesRegex(ImportError, "pip install pandas"):
            baton.read(self.write("a.jsonl", {})).frame()


if __name__ == "__main__":
    unittest.main()
