# SPDX-License-Identifier: Apache-2.0
"""Student's t against published tables, and estimates against what they are for."""

import math
import random
import unittest

from baton import estimates


class Distribution(unittest.TestCase):
    def test_quantiles_are_those_of_the_tables(self):
        for level, freedom, value in ((0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 9, 2.262),
                                      (0.99, 4, 4.604), (0.99, 9, 3.250), (0.999, 10, 4.587), (0.95, 120, 1.980)):
            self.assertAlmostEqual(estimates.quantile(level, freedom), value, places=3)

    def test_tails_are_the_inverse(self):
        for freedom in (1, 2, 3, 4, 7, 50):
            self.assertAlmostEqual(estimates.two_sided_tail(estimates.quantile(0.9, freedom), freedom), 0.1, places=6)
        self.assertEqual(estimates.two_sided_tail(0, 5), 1)


class Estimates(unittest.TestCase):
    def test_pairs_forgive_what_drifts(self):
        drift = [0, 0.1, 0.2, 0.3]
        before = [math.log(1 + one) for one in drift]
        after = [math.log(1.05 * (1 + one)) for one in drift]
        low, high = estimates.interval(estimates.paired([y - x for x, y in zip(before, after)]))
        self.assertTrue(low > 0 and math.isclose(low + high, 2 * math.log(1.05), rel_tol=1e-9))
        low, high = estimates.interval(estimates.unpaired(before, after))
        self.assertTrue(low < 0 < high, "as two groups they differ less than they drift")

    def test_groups_of_unlike_spread_have_fewer_degrees_of_freedom(self):
        self.assertEqual(estimates.unpaired([0, 0.1, -0.1], [0, 0.1, -0.1]).freedom, 4)
        self.assertEqual(estimates.unpaired([0, 0.001, -0.001], [0, 0.1, -0.1]).freedom, 2)

    def test_launches_that_agree_exactly_have_a_spread_nevertheless(self):
        self.assertGreater(estimates.paired([0.0, 0.0, 0.0]).error, 0)
        self.assertGreater(estimates.unpaired([0.0, 0.0], [0.0, 0.0]).error, 0)

    def test_an_interval_of_three_pairs_covers_95_percent(self):
        generator = random.Random(1)
        outside = 0
        for _ in range(4000):
            low, high = estimates.interval(estimates.paired([generator.gauss(0, 0.03) for _ in range(3)]))
            outside += not low <= 0 <= high
        self.assertTrue(160 <= outside <= 240, outside)

    def test_what_is_computed_has_no_interval(self):
        self.assertEqual(estimates.interval(estimates.exact(0.1)), (0.1, 0.1))
        self.assertEqual((estimates.p_value(estimates.exact(0.1)), estimates.p_value(estimates.exact(0.0))), (0, 1))


class Holm(unittest.TestCase):
    def test_the_level_grows_as_hypotheses_fall(self):
        self.assertEqual(estimates.holm([0.003, 0.2, 0.004], 0.01), [True, False, True])
        self.assertEqual(estimates.holm([0.004, 0.2, 0.004], 0.01), [False, False, False])
        self.assertEqual(estimates.holm([], 0.01), [])


if __name__ == "__main__":
    unittest.main()
