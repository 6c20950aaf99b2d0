# SPDX-License-Identifier: Apache-2.0
"""The table shows measured beside published, and leaves blank what nobody has."""

import unittest

from plots.example import InFolder, record, run, skipped

from paper.records import load_cells


class Table2(InFolder):
    def make(self, records):
        """Runs table2 on the records; returns its Markdown and the rows of its CSV."""
        done = self.run_on(records, "table2.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {(row["collective"], row["ranks"]): row for row in load_cells(self.folder / "table2.csv")}
        return (self.folder / "table2.md").read_text(encoding="utf-8"), rows

    def test_measured_stands_beside_published(self):
        text, rows = self.make([record(ranks=8, milliseconds=1.5), record("ring_scan", ranks=2)])
        both = rows["all_scan", "8"]
        self.assertEqual([both[key] for key in ("mean_ms", "ci95_low_ms", "ci95_high_ms")],
                         ["1.500", "1.350", "1.650"])
        self.assertTrue(both["published_ms"])
        self.assertIn("1.500 [1.350, 1.650]", text)
        self.assertIn(both["published_ms"], text)
        self.assertIn("second-hand", text)

    def test_nobody_published_ring_scan(self):
        _, rows = self.make([record("ring_scan", ranks=8)])
        self.assertEqual(rows["ring_scan", "8"]["published_ms"], "")
        self.assertNotIn(("ring_scan", "16"), rows)

    def test_other_shapes_directions_and_natives_stay_out(self):
        _, rows = self.make([record(ranks=2, heads=1), record(ranks=2, direction="reverse"),
                             record(ranks=2, implementation="by_hand")])
        self.assertNotIn(("all_scan", "2"), rows)

    def test_a_case_without_a_time_says_why(self):
        text, rows = self.make([skipped("no room", ranks=2), record(ranks=4, wrong=7)])
        self.assertEqual(rows["all_scan", "2"]["note"], "no room")
        self.assertEqual(rows["all_scan", "4"]["mean_ms"], "")
        self.assertIn("on 4 ranks: 7 wrong elements", text)

    def test_what_is_simulated_takes_no_place_of_what_is_measured(self):
        simulated = [record(ranks=ranks, milliseconds=7.5, executor="simulator", topology="far") for ranks in (8, 16, 32)]
        text, rows = self.make([record(ranks=8, milliseconds=1.5), *simulated])
        self.assertNotIn("7.500", text)
        self.assertEqual(rows["all_scan", "8"]["mean_ms"], "1.500")
        text, _ = self.make(simulated)
        self.assertIn("| `all_scan` simulated here | 7.500 | 7.500 | 7.500 |", text)
        self.assertIn("- Simulated here: simulated: far", text)
        self.assertNotIn("measured here, mean", text)

    def test_another_launch_and_a_changed_tree_are_marked(self):
        text, _ = self.make([record(ranks=8), record(ranks=16), record(ranks=32, run="b", commit="abc-dirty")])
        self.assertIn("1.000 [0.900, 1.100]<sup>a</sup>", text)
        self.assertIn("- From unmarked: launch a, commit abc; a: launch b, commit abc-dirty;", text)

    def test_nothing_measured_still_shows_what_was_published(self):
        text, rows = self.make([])
        self.assertIn("nothing of this shape yet", text)
        self.assertTrue(rows["all_gather_scan", "8"]["published_ms"])

    def test_bad_input_is_one_line(self):
        done = run("table2.py", "--results", self.folder / "none.jsonl", "--out", self.folder)
        self.assert_one_line(done, "none.jsonl: No such file")


if __name__ == "__main__":
    unittest.main()
