# SPDX-License-Identifier: Apache-2.0
"""The operator's table shows the passes as measured, over `local`, beside what was published."""

import unittest

from plots.example import InFolder, layer, local, record, run, skipped_layer

from paper.records import load_cells


class TableOperator(InFolder):
    def make(self, records):
        """Runs table_operator on the records; returns its Markdown and the rows of its CSV."""
        done = self.run_on(records, "table_operator.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {tuple(row[key] for key in ("name", "pass", "tokens", "ranks")): row
                for row in load_cells(self.folder / "operator.csv")}
        return (self.folder / "operator.md").read_text(encoding="utf-8"), rows

    def test_passes_stand_side_by_side_and_are_never_added_up(self):
        text, rows = self.make([layer(which="forward"), layer(which="backward")])
        self.assertIn("| forward, P=4 | backward, P=4 |", text)
        self.assertNotIn("| both, P=4", text)
        self.assertNotIn(("zeco", "both", "1024", "4"), rows)

    def test_overhead_is_median_over_median_of_local(self):
        text, rows = self.make([local(milliseconds=2), layer(milliseconds=3, mean_seconds=1)])
        self.assertEqual(rows["zeco", "both", "1024", "4"]["over_local"], "1.500")
        self.assertEqual(rows["zeco", "both", "1024", "4"]["mean_ms"], "1000.000")
        self.assertEqual(rows["local", "both", "1024", "4"]["over_local"], "")
        self.assertIn("| over `local` | 1.50 |", text)
        self.assertNotIn("different launches", text)

    def test_a_ratio_over_two_launches_is_marked(self):
        text, _ = self.make([local(), layer(run="b", milliseconds=3)])
        self.assertIn("| over `local` | 3.00* |", text)
        self.assertIn("different launches", text)

    def test_another_gate_is_not_compared_with_local(self):
        text, rows = self.make([local(), layer(), layer("ring_attention_softmax", gate="none", scan="")])
        self.assertEqual(rows["ring_attention_softmax", "both", "1024", "4"]["over_local"], "")
        self.assertIn("- Gate none: `ring_attention_softmax`.", text)

    def test_only_the_published_form_stands(self):
        _, rows = self.make([layer(mode="exposed", milliseconds=9), layer(mode="compute_only", scan=""),
                             layer(milliseconds=5)])
        self.assertEqual(rows["zeco", "both", "1024", "4"]["median_ms"], "5.000")

    def test_several_scans_of_a_method_are_told_apart(self):
        text, _ = self.make([layer(), layer(scan="two_shot")])
        self.assertIn("`zeco (all_scan)`", text)
        self.assertIn("`zeco (two_shot)`", text)

    def test_one_table_for_each_number_of_tokens(self):
        text, _ = self.make([layer(tokens=512), layer(tokens=1024)])
        self.assertIn("## 512 tokens a rank, H=4", text)
        self.assertIn("## 1024 tokens a rank, H=4", text)

    def test_published_cells_stand_beside_the_same_shape(self):
        text, rows = self.make([layer("lasp1", tokens=16384, heads=16, scan="ring_scan"),
                                layer("lasp1_as_released", tokens=16384, heads=16, scan="")])
        published = rows["LASP-1", "pass not stated", "16384", "8"]
        self.assertIn("second-hand", published["published_source"])
        section = text.split("## 16384 tokens a rank, H=16\n")[1].split("\n")
        methods = [line.split("|")[1].strip() for line in section if line.startswith("|")]
        at = methods.index("LASP-1")
        self.assertEqual(methods[at + 1], "`lasp1`")
        self.assertIn(published["published_ms"], section[section.index("") + 1 + at])

    def test_published_cells_of_another_shape_stand_alone(self):
        text, _ = self.make([layer()])
        self.assertIn("## 16384 tokens a rank, H=16", text)
        self.assertIn("Not stated: whether", text)

    def test_a_case_without_a_time_says_why(self):
        text, rows = self.make([skipped_layer("no room"), layer("lasp1", scan="ring_scan", wrong=7)])
        self.assertEqual(rows["zeco", "both", "1024", "4"]["note"], "no room")
        self.assertIn("- No time for `lasp1` (both of 1024 tokens on 4 ranks): 7 wrong elements.", text)

    def test_what_is_simulated_takes_no_place_of_what_is_measured(self):
        simulated = [layer(ranks=ranks, milliseconds=7.5, executor="simulator", topology="far") for ranks in (4, 8, 16)]
        text, rows = self.make([layer(milliseconds=1.5), *simulated])
        self.assertNotIn("7.500", text)
        self.assertEqual(rows["zeco", "both", "1024", "4"]["mean_ms"], "1.500")
        text, _ = self.make(simulated)
        self.assertIn("| `zeco` | simulated here, mean | 7.500 | 7.500 | 7.500 |", text)
        self.assertNotIn("measured here", text)

    def test_softmax_has_a_table_of_its_own(self):
        text, _ = self.make([layer(), layer("ring_attention_softmax", gate="none", scan="")])
        linear, softmax = text.split("## 1024 tokens a rank, H=4, softmax attention")
        self.assertNotIn("| `ring_attention_softmax` |", linear)
        self.assertNotIn("| `zeco` |", softmax)

    def test_records_of_collectives_stay_out(self):
        text, _ = self.make([record()])
        self.assertIn("nothing of this shape yet", text)

    def test_bad_input_is_one_line(self):
        done = run("table_operator.py", "--results", self.folder / "none.jsonl", "--out", self.folder)
        self.assert_one_line(done, "none.jsonl: No such file")


if __name__ == "__main__":
    unittest.main()
