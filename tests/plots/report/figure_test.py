# SPDX-License-Identifier: Apache-2.0
"""A figure of records is the first of the page of its kind, of the records that were asked for, in both formats."""

import unittest

from plots.example import InFolder, layer, local, on_gpus, record, run_here, skipped, write

SCANS = [record(name, ranks, ranks * time) for name, time in (("all_scan", 1), ("ring_scan", 2)) for ranks in (2, 4)]
SIZES = [on_gpus(name, executor, size) for name, executor in (("all_scan_fused", "peer"), ("nccl_all_gather_scan", "nccl"))
         for size in (2**20, 2**22)]
LAYERS = [local(), layer(milliseconds=3), layer(mode="compute_only", scan="", milliseconds=2), layer("lasp2", milliseconds=4)]


class Figures(InFolder):
    def draw(self, kind, records, *arguments):
        """What the command said, and the words of the figure."""
        done = run_here("figure", kind, "--results", write(self.folder / "r.jsonl", records), "--out", self.folder, *arguments)
        drawn = sorted(self.folder.glob("*.svg"))
        return done, drawn[0].read_text(encoding="utf-8") if drawn else ""

    def test_each_kind_in_both_formats_and_the_same_again(self):
        for kind, name, records in (("ranks", "time_against_ranks", SCANS), ("sizes", "time_against_size", SIZES),
                                    ("layers", "operator_time", LAYERS)):
            with self.subTest(kind):
                self.assert_draws_the_same(name, lambda kind=kind, records=records: self.draw(kind, records)[0])

    def test_the_title_says_of_what_and_the_text_of_which_commit(self):
        _, drawn = self.draw("ranks", SCANS)
        self.assertIn("Exclusive scan", drawn)
        self.assertIn("Commit abc, session", drawn)

    def test_only_the_records_that_were_asked_for_are_drawn(self):
        more = [record("two_shot", ranks) for ranks in (2, 4)]
        self.assertIn("two_shot", self.draw("ranks", SCANS + more)[1])
        self.assertNotIn("two_shot", self.draw("ranks", SCANS + more, "--names", "all_scan,ring_scan")[1])
        done, _ = self.draw("ranks", SCANS, "--ranks", "4")
        self.assert_one_line(done, "nothing to draw, which takes two timed methods")

    def test_says_so_when_there_is_nothing_to_draw(self):
        for kind, records in (("ranks", [skipped("no room"), record(wrong=1, ranks=2)]), ("sizes", [record()]), ("layers", SCANS)):
            self.assert_one_line(self.draw(kind, records)[0], "nothing to draw")


if __name__ == "__main__":
    unittest.main()
