# SPDX-License-Identifier: Apache-2.0
"""DistFlashAttention's iterations stand beside layers simulated on both of its machines."""

import unittest

from baton.paper.sections import dist_flash
from baton.paper.sources import A100, A100_PAIR, Sources
from plots.paper.shown import published, simulated_layer

PUBLISHED = published("dist_flash_attention")


def simulated(name, gpus, length, seconds, topology=A100_PAIR, **changes):
    """One layer on `length` thousands of tokens."""
    return simulated_layer(name, 1e3 * seconds, topology, **{"ranks": gpus, "tokens": length * 1024 // gpus, "heads": 32, **changes})


def table(made, *records):
    return [(row.label, row.kind, [cell and cell.text for cell in row.cells])
            for row in made(Sources(list(records), {}, PUBLISHED)).rows]


class Tables(unittest.TestCase):
    def test_layers_are_multiplied_and_what_doubling_adds_leaves_out_what_grows_with_the_tokens(self):
        node = [simulated(dist_flash.OURS, 8, length, seconds) for length, seconds in ((64, 0.1), (128, 0.3), (256, 1.1))]
        pair = [simulated(dist_flash.OURS, 16, length, seconds * factor, topology)
                for topology, factor in ((A100_PAIR, 1), (A100, 0.5)) for length, seconds in ((128, 0.2), (256, 0.6), (512, 2.0))]
        rows = table(dist_flash.iterations_table, *node, *pair)
        self.assertEqual(rows[0][2], ["5.98", "17.26", "58.46", "12.75", "30.21", "106.37"])
        self.assertEqual(rows[1], ("`dist_flash_attention`, 32 layers", "simulated, 100 Gb/s a card",
                                   ["3.20", "9.60", "35.2", "6.40", "19.2", "64.0"]))
        self.assertEqual(rows[2][1:], ("simulated, 200 Gb/s a card", [None] * 3 + ["3.20", "9.60", "32.0"]))
        self.assertEqual(rows[5][1:], ("published, derived", [None, "5.30", "23.9", None, "4.71", "46.0"]))
        self.assertEqual(rows[6][2], [None, "3.20", "16.0", None, "6.40", "25.6"])
        self.assertEqual(rows[7][1:], ("simulated / published", [None, "0.604×", "0.668×", None, "1.36×", "0.557×"]))

    def test_ulysses_computes_a_forward_pass_twice_and_pays_for_padded_heads(self):
        ulysses = [simulated(dist_flash.ULYSSES, 16, 512, *rest, **more) for *rest, more in (
            (2.0, A100, {}), (0.5, A100, {"which": "forward"}), (2.0, {}), (3.0, {"heads": 48}))]
        rows = {row[:2]: row[2] for row in table(dist_flash.ulysses_table, simulated(dist_flash.OURS, 16, 512, 2.5, A100), *ulysses)}
        self.assertEqual(rows["Ulysses less DistFlashAttention", "published, derived"], ["7.32", "27.7"])
        self.assertEqual(rows["", "simulated, derived, 200 Gb/s a card"], [None, "−16.0"])
        self.assertEqual(rows["", "the same, Ulysses forward twice"], [None, "0"])
        self.assertEqual(rows["LLaMA-33H over LLaMA-7B, DeepSpeed-Ulysses", "published / published"], ["1.51×", "1.51×"])
        self.assertEqual(rows["48 over 32 heads, `ulysses_softmax`", "simulated / simulated"], [None, "1.50×"])


if __name__ == "__main__":
    unittest.main()
