# SPDX-License-Identifier: Apache-2.0
"""DistFlashAttention's iterations stand beside layers simulated on both of its machines."""

import unittest

from baton.paper.page import Table, Text
from baton.paper.sections import dist_flash
from baton.paper.sources import A100, A100_PAIR, Sources, load_cells
from plots.example import ROOT, layer

PUBLISHED = {"dist_flash_attention": load_cells(ROOT / "results/paper/dist_flash_attention.csv")}


def simulated(name, gpus, length, seconds, topology=A100_PAIR, **changes):
    """One layer on `length` thousands of tokens."""
    return layer(name, **{"which": "both", "milliseconds": 1e3 * seconds, "ranks": gpus, "tokens": length * 1024 // gpus,
                          "heads": 32, "executor": "simulator", "topology": topology, "dtype": "bf16", **changes})


def ours(gpus, length, seconds, topology=A100_PAIR, **changes):
    return simulated(dist_flash.OURS, gpus, length, seconds, topology, **changes)


def ulysses(length, seconds, topology=A100_PAIR, **changes):
    return simulated(dist_flash.ULYSSES, 16, length, seconds, topology, **changes)


def table(made, records):
    rows = made(Sources(list(records), {}, PUBLISHED)).rows
    return [(row.label, row.kind, [cell and cell.text for cell in row.cells]) for row in rows]


def paragraph(title, records):
    sources = Sources(list(records), {}, PUBLISHED)
    return next((block.markdown for block in dist_flash.blocks(sources)
                 if isinstance(block, Text) and block.markdown.startswith(f"**{title}")), None)


class Iterations(unittest.TestCase):
    NODE = (ours(8, 64, 0.1), ours(8, 128, 0.3), ours(8, 256, 1.1))
    PAIR = tuple(ours(16, length, seconds * factor, topology) for topology, factor in ((A100_PAIR, 1), (A100, 0.5))
                 for length, seconds in ((128, 0.2), (256, 0.6), (512, 2.0)))

    def test_layers_are_multiplied_and_a_node_has_no_card(self):
        rows = table(dist_flash.iterations_table, self.NODE + self.PAIR)
        self.assertEqual(rows[0][2], ["5.98", "17.26", "58.46", "12.75", "30.21", "106.37"])
        self.assertEqual(rows[1], ("`dist_flash_attention`, 32 layers", "simulated, 100 Gb/s a card",
                                   ["3.20", "9.60", "35.2", "6.40", "19.2", "64.0"]))
        self.assertEqual(rows[2][1:], ("simulated, 200 Gb/s a card", [None] * 3 + ["3.20", "9.60", "32.0"]))

    def test_what_doubling_adds_to_twice_the_time_leaves_out_what_grows_with_the_tokens(self):
        rows = table(dist_flash.iterations_table, self.NODE + self.PAIR)
        self.assertEqual(rows[5][1:], ("published, derived", [None, "5.30", "23.9", None, "4.71", "46.0"]))
        self.assertEqual(rows[6][2], [None, "3.20", "16.0", None, "6.40", "25.6"])
        self.assertEqual(rows[7][1:], ("simulated / published", [None, "0.604×", "0.668×", None, "1.36×", "0.557×"]))
        text = paragraph("DistFlashAttention: iterations", self.NODE + self.PAIR)
        self.assertIn("On one node ours is 0.604 to 0.668 of the published, on two at 512K 0.557 with cards of 100 Gb/s and "
                      "0.279 with cards of 200", text)
        self.assertIsNone(paragraph("DistFlashAttention: iterations", self.NODE))


class Ulysses(unittest.TestCase):
    RECORDS = (ours(16, 512, 2.5, A100), ulysses(512, 2.0, A100), ulysses(512, 0.5, A100, which="forward"),
               ulysses(512, 2.0), ulysses(512, 3.0, heads=48))

    def test_the_difference_stands_with_a_forward_pass_computed_twice(self):
        rows = {row[:2]: row[2] for row in table(dist_flash.ulysses_table, self.RECORDS)}
        self.assertEqual(rows["Ulysses less DistFlashAttention", "published, derived"], ["7.32", "27.7"])
        self.assertEqual(rows["", "simulated, derived, 200 Gb/s a card"], [None, "−16.0"])
        self.assertEqual(rows["", "the same, Ulysses forward twice"], [None, "0"])
        text = paragraph("DistFlashAttention beside Ulysses", self.RECORDS)
        self.assertIn("Ulysses 27.7 s behind; attention alone, simulated with cards of 200 Gb/s, has it 16.0 s ahead", text)
        self.assertIn("that adds 16.0 s at our rates, and 0.0 s are explained", text)

    def test_heads_that_cannot_be_shared_cost_their_padding(self):
        rows = {row[:2]: row[2] for row in table(dist_flash.ulysses_table, self.RECORDS)}
        self.assertEqual(rows["LLaMA-33H over LLaMA-7B, DeepSpeed-Ulysses", "published / published"], ["1.51×", "1.51×"])
        self.assertEqual(rows["48 over 32 heads, `ulysses_softmax`", "simulated / simulated"], [None, "1.50×"])
        self.assertIn("1.51 times as long as that with 32, and 48 heads simulated take 1.50", paragraph("33", self.RECORDS))
        self.assertIsNone(paragraph("33", self.RECORDS[:4]))

    def test_the_tables_keep_every_column_without_records(self):
        for made in (dist_flash.iterations_table, dist_flash.ulysses_table):
            found = made(Sources([], {}, PUBLISHED))
            self.assertIsInstance(found, Table)
            self.assertEqual({len(row.cells) for row in found.rows}, {len(found.columns)})


if __name__ == "__main__":
    unittest.main()
