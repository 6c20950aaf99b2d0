# SPDX-License-Identifier: Apache-2.0
"""Published cells become times, and what is kept of a table is what the simulator says of it today."""

import os
import unittest

from baton.regret import contests, published
from plots.example import BENCHES
from plots.regret.measured_test import ANEW, KEPT


class Times(unittest.TestCase):
    def test_a_time_a_rate_and_a_gain(self):
        for method, value, unit, times in (
                ("ZeCO", "2", "ms", {"zeco": 2}), ("ZeCO", "4", "tokens/s per GPU", {"zeco": 0.25}),
                ("USP", "8", "TFLOP/s a GPU", {"usp_zigzag": 0.125}), ("HybridCP", "9", "ms", {}),
                ("LASP-2 vs LASP-1", "25", "% throughput gain", {"lasp2": 1, "lasp1": 1.25})):
            with self.subTest(method):
                self.assertEqual(published.times({"method": method, "value": value, "unit": unit}), times)

    def test_every_table_is_kept(self):
        self.assertEqual({one.source for one in KEPT} & {table.name for table in published.TABLES},
                         {table.name for table in published.TABLES})


@unittest.skipUnless(BENCHES, "no benches")
class Benches(unittest.TestCase):
    def test_the_simulator_names_the_same_methods_today(self):
        table = published.TABLES[0]
        today = published.of_table(table, os.path.dirname(next(iter(BENCHES.values()))))
        kept = [one for one in KEPT if one.source == table.name]
        self.assertEqual(contests.as_text([], today), contests.as_text([], kept), ANEW)


if __name__ == "__main__":
    unittest.main()
