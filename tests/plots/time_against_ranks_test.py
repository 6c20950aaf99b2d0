# SPDX-License-Identifier: Apache-2.0
"""The figure is drawn from the records alone, in both formats."""

import importlib.util
import pathlib
import tempfile
import unittest

from example import record, run, skipped, write


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class TimeAgainstRanks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def draw(self, records, *arguments):
        path = write(self.folder / "r.jsonl", records)
        return run("time_against_ranks.py", "--results", path, "--out", self.folder, *arguments)

    def test_draws_both_formats(self):
        names = ("all_scan", "ring_scan")
        done = self.draw([record(name, ranks, milliseconds=ranks) for name in names for ranks in (2, 4)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "time_against_ranks.png").read_bytes().startswith(b"\x89PNG"))
        self.assertIn("<svg", (self.folder / "time_against_ranks.svg").read_text(encoding="utf-8"))

    def test_the_same_records_draw_the_same_file(self):
        records = [record(ranks=ranks) for ranks in (2, 4)]
        self.draw(records)
        first = (self.folder / "time_against_ranks.svg").read_bytes()
        self.draw(records)
        self.assertEqual((self.folder / "time_against_ranks.svg").read_bytes(), first)

    def test_says_so_when_there_is_nothing_to_draw(self):
        done = self.draw([skipped("no room"), record(wrong=1, ranks=2)])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no timed record", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_methods_at_one_rank_count_make_no_line(self):
        import time_against_ranks
        swept = [record(ranks=2), record(ranks=4)]
        lines = time_against_ranks.lines_by_method([*swept, record("ring_scan", ranks=4)], None)
        self.assertEqual(lines, {"all_scan": swept})


if __name__ == "__main__":
    unittest.main()
