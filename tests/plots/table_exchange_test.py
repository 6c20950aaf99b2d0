# SPDX-License-Identifier: Apache-2.0
"""The table of exchanges on GPUs: medians with intervals, ratios to All-Scan, and bounds where they apply."""

import unittest

from plots.example import InFolder, on_gpus, run, skipped

from paper.records import load_cells

MIB = 2**20


class TableExchange(InFolder):
    def make(self, records):
        done = self.run_on(records, "table_exchange.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "exchange.md").read_text(encoding="utf-8")

    def test_methods_by_size(self):
        text = self.make([on_gpus(microseconds=10), on_gpus(size=MIB), on_gpus("ring_scan", "nccl", microseconds=25)])
        self.assertIn("| | | 1 MiB | 2 MiB |", text)
        self.assertIn("| `all_scan_fused` | measured, peer native<sup>a</sup> | 10.0 [9.00, 11.0] | 10.0 [9.00, 11.0] |", text)
        self.assertIn("| `ring_scan` | measured, nccl<sup>a</sup> |  | 25.0 [22.5, 27.5] |", text)
        self.assertIn("|  | × `all_scan_fused` |  | 2.50 |", text)
        self.assertIn("|  | bound, and its share | 8.05, 80 % | 9.10, 91 % |", text)
        cells = {(row["row"], row["what"], row["column"]): row
                 for row in load_cells(self.folder / "exchange_4_isolated.csv")}
        self.assertEqual(cells["ring_scan", "measured, nccl", "2 MiB"]["value"], "25")
        self.assertEqual(cells["ring_scan", "× `all_scan_fused`", "2 MiB"]["kind"], "derived")

    def test_rounds_of_a_graph_share_an_empty_round_and_have_no_bound(self):
        self.assertNotIn("bound, and its share", self.make([on_gpus(cadence="graph")]))

    def test_what_is_narrower_on_the_wire_shows_its_error(self):
        text = self.make([on_gpus(), on_gpus(executor="peer_bf16", relative_error=0.004)])
        self.assertEqual(text.count("error of the state"), 1)
        self.assertIn("| 4.0e-03 |", text)

    def test_another_launch_and_lowered_clocks_are_told(self):
        power_cap = {"throttle_reasons": [1.0, 4.0]}
        text = self.make([on_gpus(), on_gpus(size=MIB, device_after=power_cap),
                          on_gpus("ring_scan", "nccl", run="b", microseconds=30)])
        self.assertIn("| `ring_scan` | measured, nccl<sup>b</sup> |  | 30.0 [27.0, 33.0] |", text)
        self.assertIn("- b: here, commit abc, launch b.", text)
        self.assertIn("3.00*", text)
        self.assertIn("- * A ratio with a time of another launch than a.", text)
        self.assertIn("- 1 of 3 rows ran or ended with lowered clocks", text)

    def test_without_a_time_it_says_why(self):
        self.assertIn("- No time, `all_scan`: no peer access.", self.make([skipped("no peer access", executor="peer")]))

    def test_bad_input_is_one_line(self):
        self.assert_one_line(run("table_exchange.py", "--results", self.folder / "none.jsonl", "--out", self.folder),
                             "none.jsonl: No such file")


if __name__ == "__main__":
    unittest.main()
