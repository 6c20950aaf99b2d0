# SPDX-License-Identifier: Apache-2.0
"""Rates and sums of softmax methods are what the published ones are: products of half the pairs, rounds one after another."""

import unittest

from baton.paper.sections import published_softmax as softmax
from baton.paper.sources import A10, A100, H100, Sources
from plots.paper.shown import published, rows, simulated_layer, tables

PUBLISHED = published("token_ring", "dist_flash_attention", "ulysses_scaling", "magi_h100_causal")


def simulated(topology, name, ranks, milliseconds, **changes):
    return simulated_layer(name, milliseconds, topology, **{"which": "forward", "ranks": ranks, **changes})


def magi(name, milliseconds, which="forward", **changes):
    return simulated(H100, name, 8, milliseconds, **{"which": which, "tokens": 8192, "heads": 64, "kv_heads": 8, **changes})


def table(name, *records):
    return rows(tables(softmax.section(Sources(list(records), {}, PUBLISHED)))[name])


class Softmax(unittest.TestCase):
    def test_rounds_of_token_ring_are_summed_and_both_ratios_stand(self):
        found = table("token_ring", *(simulated(A10, name, 4, time, tokens=6000, heads=32) for name, time in (
            ("token_ring_zigzag", 36), ("ring_attention_zigzag", 24))))
        self.assertEqual(found["Ring Attention", "published"], ["7.6", "7.6", "7.6", "22.8", None])
        self.assertEqual(found["`token_ring_zigzag`", "simulated"], [None] * 4 + ["36.0"])
        self.assertEqual(found["Ring Attention over TokenRing", "derived"], [None] * 3 + ["1.97×", "0.667×"])

    def test_both_of_deepspeed_ulysses_stand_over_their_own_first(self):
        found = table("ulysses_scaling", *(simulated(A100, "ulysses_softmax", ranks, time, which="both", tokens=16384, heads=64)
                                           for ranks, time in ((8, 500), (16, 1010), (64, 4000))))
        self.assertEqual(found["over 8 GPUs", "published"], ["1.00×", "0.982×", "0.984×", "1.01×"])
        self.assertEqual(found["over 8 GPUs", "simulated"], ["1.00×", "0.990×", None, "1.00×"])

    def test_rates_count_two_products_forward_and_five_backward_of_half_the_pairs(self):
        pairs = 65536 * 65537 / 2
        for which, products in (("forward", 2), ("backward", 5)):
            rate = products * 2 * pairs * 64 * 128 / 8 / 10e-3 * 1e-12
            self.assertAlmostEqual(softmax.tflops(magi("ulysses_softmax", 10, which=which)), rate)

    def test_a_rate_of_the_suites_setting_alone_stands_under_the_published_one(self):
        found = table("magi_forward", magi("ulysses_softmax", 14.66), magi("ulysses_softmax", 9, kv_heads=64),
                      magi("ulysses_softmax", 9, which="backward"), magi("ulysses_softmax", 9, mode="exposed"))
        self.assertEqual(found["Ulysses", "published"], ["600", "556", "578", "581"])
        self.assertEqual(found["`ulysses_softmax`", "simulated"], ["600", None, None, None])
        self.assertEqual(found["`ulysses_softmax`", "simulated / published"], ["1.00×", None, None, None])


if __name__ == "__main__":
    unittest.main()
