# SPDX-License-Identifier: Apache-2.0
"""Which layers make a stack, how their tokens lie, and what a stack costs."""

import unittest

from baton import stacks
from plots.example import layer


def of(name, layout, milliseconds=1.0, **changes):
    return layer(name, milliseconds=milliseconds, layout=layout, **changes)


CONTIGUOUS, ZIGZAG = of("ring", "contiguous"), of("ring_zigzag", "zigzag")
ZECO, CHAIN = of("zeco", "contiguous"), of("zeco_zigzag", "zigzag")
MOVE = {"name": stacks.MOVE, "median_seconds": 1e-4, "sent_bytes": 7}


class Stacks(unittest.TestCase):
    def named(self, move):
        return {one.name: one.layout for one in stacks.all_of([CONTIGUOUS, ZIGZAG], [ZECO, CHAIN], move)}

    def test_layers_lie_alike_or_tokens_move_to_the_softmax_layer(self):
        alike = {"ring + 3 zeco": "contiguous", "ring_zigzag + 3 zeco_zigzag": "zigzag"}
        self.assertEqual(self.named(None), alike)
        self.assertEqual(self.named(MOVE), {**alike, "ring_zigzag + 3 zeco + 4 moves": "moved"})

    def test_an_own_order_of_tokens_is_like_no_other(self):
        for softmax in ("other", "zigzag"):
            self.assertEqual(list(stacks.all_of([of("softmax", softmax)], [of("linear", "other")], MOVE)), [])

    def test_a_single_pass_moves_there_and_back(self):
        forward = of("ring_zigzag", "zigzag", **{"pass": "forward"})
        self.assertIn(" + 2 moves", stacks.stack(stacks.MOVED, forward, ZECO, MOVE).name)

    def test_a_total_counts_every_part(self):
        one = stacks.stack(stacks.MOVED, ZIGZAG, ZECO, MOVE)
        self.assertAlmostEqual(stacks.total(one, "median_seconds"), 1e-3 + 3e-3 + 4e-4)
        self.assertIsNone(stacks.total(one, "no such key"))

    def test_a_move_has_the_bytes_of_the_hidden_states(self):
        for dtype, size in (("bf16", 2), ("f32", 4)):
            words = stacks.shape_of_move(512, 16, 128, dtype)
            asked = dict(zip(words[::2], words[1::2]))
            self.assertEqual(4 * int(asked["--tokens"]) * int(asked["--heads"]) * int(asked["--d-k"]), 512 * 16 * 128 * size)


if __name__ == "__main__":
    unittest.main()
