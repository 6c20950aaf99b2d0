# SPDX-License-Identifier: Apache-2.0
"""A contest is judged by its measured times, and what is kept is read as it was written."""

import unittest

from baton.regret import contests
from plots.example import InFolder

RING, SCAN, GATHER = "a_ring", "a_scan", "a_gather"


def judged(times):
    return contests.Judged("some-machine", "collective", "somewhere", contests.COMPOSED, "ranks:4/a, b", 4, 3, RING,
                           SCAN, times, 3.0, 1.5)


class Judge(unittest.TestCase):
    def test_the_simulator_names_a_row_and_the_measured_times_judge_it(self):
        found = contests.judge({RING: 3.0, SCAN: 2.0, GATHER: 8.0}, {RING: 0.1, SCAN: 0.2, GATHER: 0.3})
        self.assertEqual(found, (3, RING, SCAN, 1.5, 4.0, 2.0))

    def test_what_only_one_of_them_knows_does_not_compete(self):
        self.assertEqual(contests.judge({RING: 3.0, SCAN: 2.0, GATHER: 1.0}, {RING: 0.1, SCAN: 0.2, "more": 0.01}),
                         (2, RING, SCAN, 1.5, 1.5, 2.0))
        self.assertIsNone(contests.judge({RING: 3.0, SCAN: 2.0}, {RING: 0.1}))

    def test_equal_predictions_are_named_in_the_order_of_names(self):
        self.assertEqual(contests.judge({SCAN: 2.0, RING: 3.0}, {SCAN: 0.1, RING: 0.1})[1], RING)


class Kept(InFolder):
    def test_it_is_read_as_it_was_written(self):
        path = self.folder / "kept.csv"
        path.write_text(contests.as_text(["Made of nothing."], [judged(1.25), judged(1.0)]), encoding="utf-8")
        self.assertTrue(path.read_text(encoding="utf-8").startswith("# Made of nothing.\nsource,"))
        self.assertEqual(contests.read(path), [judged(1.25), judged(1.0)])

    def test_the_sentence_has_the_median_and_the_worst(self):
        self.assertIn("Over 3 measured", contests.sentence([judged(1.0), judged(1.25), judged(2.0)]))
        self.assertIn("takes 1.25 times as long as the fastest at the median, 2.00 times at worst.",
                      contests.sentence([judged(1.0), judged(2.0), judged(1.25)]))


if __name__ == "__main__":
    unittest.main()
