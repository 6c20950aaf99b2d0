# SPDX-License-Identifier: Apache-2.0
"""Which simulated time is the least, and that the error behind it is the one that was measured."""

import re
import unittest

from baton import fastest
from plots.example import ROOT, layer


class Fastest(unittest.TestCase):
    def test_the_least_time_its_equals_and_the_next(self):
        found = fastest.among({"b": 1.1, "a": 1.0, "d": 2.0, "c": 1.2})
        self.assertEqual((found.name, found.tied, found.runner_up), ("a", ["b", "c"], "b"))
        self.assertAlmostEqual(found.margin, 1.1)
        self.assertEqual(fastest.among({"a": 1.0, "b": 2.0}).tied, [])
        self.assertIsNone(fastest.among({"a": 1.0}).runner_up)
        self.assertIsNone(fastest.among({}))

    def test_a_ratio_counts_from_the_error_on_whichever_is_the_slower(self):
        error = fastest.TYPICAL_ERROR
        for ratio, expected in ((1 + 1.01 * error, True), (1 + 0.99 * error, False)):
            self.assertEqual((fastest.is_distinct(ratio), fastest.is_distinct(1 / ratio)), (expected, expected))

    def test_the_error_is_the_largest_that_was_measured(self):
        tables = list(ROOT.glob("results/*/prediction-errors*.txt"))
        errors = [int(re.search(r"^# all +\d+ +\S+ +(\d+)", path.read_text(encoding="utf-8"), re.MULTILINE)[1])
                  for path in tables]
        self.assertGreater(len(errors), 2)
        self.assertEqual(fastest.TYPICAL_ERROR, max(errors) / 100)

    def test_a_layer_without_messages_is_no_method_of_the_whole_sequence(self):
        self.assertTrue(fastest.exchanges(layer(sent_bytes=5)))
        self.assertFalse(fastest.exchanges(layer(sent_bytes=0)))
        self.assertTrue(fastest.exchanges(layer(sent_bytes=0, ranks=1)))


if __name__ == "__main__":
    unittest.main()
