# SPDX-License-Identifier: Apache-2.0
"""The hybrid by the layout of its tokens, from made-up times: which layout takes least time, and from how many tokens on."""

import json
import unittest

from baton import fastest, stacks
from baton.advise import layouts, simulator

QUESTION = simulator.Question("somewhere.json", 512, 64, None, 128, 4, "bf16", "both", "gdn")


def row(contiguous, moved, zigzag):
    """Times in ms, or None."""
    times = dict(zip((stacks.CONTIGUOUS, stacks.MOVED, stacks.ZIGZAG), (contiguous, moved, zigzag), strict=True))
    return {layout: None if time is None else fastest.among({f"a_{layout}": time / 1e3}) for layout, time in times.items()}


class Layouts(unittest.TestCase):
    def said(self, rows):
        return list(layouts.lines(QUESTION, rows))

    def test_each_layout_has_its_time_and_the_least_its_name(self):
        head, titles, line, _ = self.said({2048: row(3.0, 2.0, 1.0)})
        self.assertIn("one softmax layer and 3 gdn ones on 4 ranks, 64 heads of 128, bf16", head)
        self.assertEqual(titles.split(), ["tokens", "a", "rank", "contiguous", "moved", "zigzag", "the", "fastest"])
        self.assertEqual(line.split(), ["2,048", "3.00", "ms", "2.00", "ms", "1.00", "ms", "a_zigzag"])

    def test_it_says_from_how_many_tokens_a_layout_takes_least_time(self):
        rows = {512: row(2.0, 3.0, 1.0), 1024: row(2.0, 3.0, 1.9), 2048: row(2.0, 1.0, 3.0)}
        self.assertEqual(self.said(rows)[-2:], [
            "zigzag takes least time at 512 to 1,024 tokens a rank; its lead is beyond the simulator's error of 23 % at 512",
            "moved takes least time at 2,048 tokens a rank; its lead is beyond the simulator's error of 23 % at 2,048"])

    def test_a_difference_that_the_simulator_cannot_tell_is_none(self):
        self.assertTrue(self.said({512: row(1.1, 1.2, 1.0)})[-1].endswith("its lead is within the simulator's error of 23 %"))

    def test_a_layout_that_no_hybrid_has_is_left_out(self):
        line, last = self.said({512: row(2.0, None, 1.0)})[-2:]
        self.assertEqual(line.split(), ["512", "2.00", "ms", "-", "1.00", "ms", "a_zigzag"])
        self.assertIn("beyond the simulator's error of 23 % at 512", last)

    def test_as_json_every_layout_has_its_time(self):
        found, = json.loads(layouts.as_json({512: row(2.0, None, 1.0)}))
        self.assertEqual(found, {"tokens": 512, "contiguous": {"name": "a_contiguous", "seconds": 2e-3}, "moved": None,
                                 "zigzag": {"name": "a_zigzag", "seconds": 1e-3}})


if __name__ == "__main__":
    unittest.main()
