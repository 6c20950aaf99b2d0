# SPDX-License-Identifier: Apache-2.0
"""Published figures of softmax methods stand beside simulated ones of the same setting, and differences are explained."""

import unittest

from baton.paper import cells
from baton.paper.page import Table, Text
from baton.paper.sections import published_softmax as softmax
from baton.paper.sources import A10, A100, H100, Sources, load_cells
from plots.example import ROOT, layer, skipped_layer

PUBLISHED = {name: load_cells(ROOT / f"results/paper/{name}.csv")
             for name in ("token_ring", "dist_flash_attention", "ulysses_scaling", "magi_h100_causal")}


def simulated(topology, name, ranks, milliseconds, **changes):
    return layer(name, **{"which": "forward", "milliseconds": milliseconds, "ranks": ranks, "executor": "simulator",
                          "topology": topology, "dtype": "bf16", **changes})


def token_ring(name, milliseconds, sent):
    return simulated(A10, name, 4, milliseconds, tokens=6000, heads=32, sent_bytes=sent)


def magi(name, milliseconds, ranks=8, which="forward", **changes):
    return simulated(H100, name, ranks, milliseconds, **{"which": which, "tokens": 8192, "heads": 64, "kv_heads": 8,
                                                         **changes})


def ulysses(ranks, milliseconds):
    return simulated(A100, "ulysses_softmax", ranks, milliseconds, which="both", tokens=16384, heads=64)


def blocks(*records):
    return softmax.section(Sources(list(records), {}, PUBLISHED)).blocks


def table(name, *records):
    """{(label, kind): texts}, where a row without a label has that of the row above."""
    found, = [block for block in blocks(*records) if isinstance(block, Table) and block.name == name]
    rows, label = {}, ""
    for row in found.rows:
        label = row.label or label
        rows[label, row.kind] = [cell and cell.text for cell in row.cells]
    return rows


def paragraph(title, *records):
    """The paragraph that begins with this title, None without it."""
    return next((block.markdown for block in blocks(*records) if isinstance(block, Text)
                 and block.markdown.startswith(f"**{title}")), None)


class EveryTable(unittest.TestCase):
    def test_every_published_cell_is_shown_with_its_source(self):
        shown = {cell.value + cell.origin for block in blocks() if isinstance(block, Table)
                 for row in block.rows for cell in row.cells if cell and cell.kind == cells.PUBLISHED}
        for name, rows in PUBLISHED.items():
            for row in rows:
                self.assertTrue(row["value"] + row["source"] in shown, f"{name}: {row}")

    def test_without_records_nothing_is_explained(self):
        self.assertEqual([block.markdown for block in blocks()[1:] if isinstance(block, Text)], [])

    def test_no_cell_mixes_kinds_but_a_derived_one(self):
        for block in blocks(ulysses(8, 500), magi("ulysses_softmax", 13)):
            for row in block.rows if isinstance(block, Table) else ():
                for cell in filter(None, row.cells):
                    self.assertEqual(cell.kind == cells.SIMULATED, cell.origin.startswith("topology "), cell)


class TokenRing(unittest.TestCase):
    RECORDS = (token_ring("token_ring_zigzag", 36, 395e6), token_ring("ring_attention_zigzag", 24, 295e6))

    def test_rounds_are_summed_and_both_ratios_stand(self):
        rows = table("token_ring", *self.RECORDS)
        self.assertEqual(rows["TokenRing", "published"], ["3.5", "3.5", "4.6", "11.6", None])
        self.assertEqual(rows["Ring Attention", "published"], ["7.6", "7.6", "7.6", "22.8", None])
        self.assertEqual(rows["`token_ring_zigzag`", "simulated"], [None] * 4 + ["36.0"])
        self.assertEqual(rows["Ring Attention over TokenRing", "derived"], [None] * 3 + ["1.97×", "0.667×"])

    def test_the_difference_is_arithmetic_of_bytes_and_the_link(self):
        text = paragraph("TokenRing", *self.RECORDS)
        self.assertIn("takes 1.50 times as long", text)
        self.assertIn("12.9 GB/s", text)
        self.assertIn("395 MB against 295", text)
        self.assertIn("49 MB and half as many queries in 4.6 ms, 16 GB/s", text)
        self.assertIsNone(paragraph("TokenRing", self.RECORDS[0]))


class DeepSpeedUlysses(unittest.TestCase):
    def test_both_stand_over_their_own_first(self):
        rows = table("ulysses_scaling", ulysses(8, 500), ulysses(16, 1010), ulysses(64, 4000))
        self.assertEqual(rows["over 8 GPUs", "published"], ["1.00×", "0.982×", "0.984×", "1.01×"])
        self.assertEqual(rows["over 8 GPUs", "simulated"], ["1.00×", "0.990×", None, "1.00×"])

    def test_the_text_tells_the_widest_difference(self):
        records = [ulysses(8, 500), ulysses(16, 1111), ulysses(32, 2000), ulysses(64, 4000)]
        self.assertIn("within −10.0 % and +0.9 %", paragraph("DeepSpeed-Ulysses", *records))
        self.assertIsNone(paragraph("DeepSpeed-Ulysses", *records[:3]))


class MagiAttentionSuite(unittest.TestCase):
    def test_rates_count_two_products_forward_and_five_backward_of_half_the_pairs(self):
        pairs = 65536 * 65537 / 2
        for which, products in (("forward", 2), ("backward", 5)):
            rate = products * 2 * pairs * 64 * 128 / 8 / 10e-3 * 1e-12
            self.assertAlmostEqual(softmax.tflops(magi("ulysses_softmax", 10, which=which)), rate)

    def test_a_simulated_rate_stands_under_the_published_one_with_its_ratio(self):
        rows = table("magi_forward", magi("ulysses_softmax", 14.66), magi("ulysses_softmax", 9, kv_heads=64),
                     magi("ulysses_softmax", 9, which="backward"), magi("ulysses_softmax", 9, mode="exposed"))
        self.assertEqual(rows["Ulysses", "published"], ["600", "556", "578", "581"])
        self.assertEqual(rows["`ulysses_softmax`", "simulated"], ["600", None, None, None])
        self.assertEqual(rows["`ulysses_softmax`", softmax.MIX], ["1.00×", None, None, None])
        self.assertEqual(rows["HybridCP", "published"][0], "422")

    def test_a_skipped_method_is_blank(self):
        refused = skipped_layer("8 heads", name="usp_zigzag", which="forward", ranks=8, executor="simulator", topology=H100,
                                tokens=8192, heads=64, kv_heads=8, dtype="bf16")
        self.assertEqual(table("magi_forward", refused)["`usp_zigzag`", "simulated"], [None] * 4)

    def test_the_ring_is_held_against_ulysses_and_its_messages(self):
        records = [magi(name, 20 if name == "ring_attention_zigzag" else 16) for name in softmax.MAGI_METHODS.values()]
        text = paragraph("Ring P2P", *records)
        self.assertIn("the published ring is 30 % below Ulysses, ours 20 %", text)
        self.assertIn("33.6 MB, 0.0904 ms of NVLink under 2.50 ms of work", text)

    def test_the_gather_is_held_against_all_cards_of_a_node(self):
        records = [magi(name, 200, 64, "backward") for name in softmax.MAGI_METHODS.values()]
        text = paragraph("Ring AllGather", *records)
        self.assertIn("10 % below Ulysses as published, 0 % as simulated", text)
        self.assertIn("on one card: 132 ms, where all cards of a node together need 17.1 ms", text)


if __name__ == "__main__":
    unittest.main()
