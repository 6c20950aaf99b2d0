# SPDX-License-Identifier: Apache-2.0
"""Student's t against published tables, and estimates against what they are for."""

import csv
import math
import random
import re
import subprocess
import unittest

from baton import estimates, results
from baton.report import sessions
from plots.example import BENCHES, ROOT, InFolder


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


class OfLaunches(unittest.TestCase):
    def test_the_mean_lies_within_its_interval(self):
        generator = random.Random(2)
        for count in range(2, 12):
            seconds = [generator.lognormvariate(-9, 2) for _ in range(count)]
            low, high = estimates.mean_interval(seconds)
            self.assertTrue(low <= estimates.mean(seconds) <= high)

    def test_one_launch_has_a_time_and_no_interval(self):
        self.assertEqual((estimates.mean([0.1]), estimates.mean_interval([0.1])), (0.1, None))

    def test_times_of_nothing_are_nothing(self):
        self.assertEqual(estimates.mean([0.0, 0.0]), 0)

    def test_the_benches_have_the_same_least_spread(self):
        text = (ROOT / "harness/measure/statistics.hpp").read_text(encoding="utf-8")
        self.assertEqual(float(re.search(r"\bleast_spread = ([0-9.e-]+);", text)[1]), estimates.LEAST_SPREAD)


@unittest.skipUnless(BENCHES, "BATON_BENCHES names no benches")
class Benches(InFolder):
    """Three launches of a bench: all that says what they took together says the same."""

    def setUp(self):
        super().setUp()
        self.records, self.csv = self.folder / "r.jsonl", self.folder / "r.csv"
        done = subprocess.run([BENCHES["collective_bench"], "--collectives", "all_scan,two_shot", "--baseline", "all_scan",
                               "--blocks", "1", "--executor", "local", "--ranks", "2", "--heads", "1", "--d-k", "4", "--d-v", "4",
                               "-n", "8", "--launches", "3", "-J", self.records, "--csv", self.csv],
                              capture_output=True, text=True, check=True)
        self.table = done.stdout

    def test_terminal_records_csv_and_this_package_agree(self):
        (session,) = sessions.read([self.records])
        with self.csv.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        for found in results.newest(results.load([self.records])):
            name, of_all = found["name"], found["over_launches"]
            medians = [one["median_seconds"] for one in results.load([self.records]) if one["name"] == name]
            (row,) = [one for one in session.comparisons[0].rows if one.name.name == name]
            cells = [one for one in lines if one["name"] == name][-1]
            for value in (found["median_seconds"], row.median, of_all["median_seconds"],
                         float(cells["over_launches_median_seconds"])):
                self.assert_near(value, estimates.mean(medians))
            ends = (*found["ci95_seconds"], *row.interval, *of_all["ci95_seconds"],
                    float(cells["over_launches_ci95_low_seconds"]), float(cells["over_launches_ci95_high_seconds"]))
            for end, expected in zip(ends, estimates.mean_interval(medians) * 4):
                self.assert_near(end, expected)
            (line,) = re.findall(rf"^{name} .*", self.table, re.MULTILINE)
            self.assertIn(f" {estimates.mean(medians) * 1e6:.3g} "[:4], line)

    def test_ratios_agree(self):
        (comparison,) = sessions.read([self.records])[0].comparisons
        rows = {row.name.name: row for row in comparison.rows}
        ratio = rows["two_shot"].ratio_to(rows["all_scan"])
        found = max(rows["two_shot"].records, key=lambda record: record["launch"])["over_launches"]
        self.assertEqual(found["ratio_to"], "all_scan, 1 block")
        self.assert_near(found["ratio"], ratio.value)
        for one, other in zip(found["ratio_ci95"], ratio.interval):
            self.assert_near(one, other)

    def assert_near(self, one, other):
        """Records have six digits."""
        self.assertTrue(math.isclose(one, other, rel_tol=1e-4), (one, other))


class Holm(unittest.TestCase):
    def test_the_level_grows_as_hypotheses_fall(self):
        self.assertEqual(estimates.holm([0.003, 0.2, 0.004], 0.01), [True, False, True])
        self.assertEqual(estimates.holm([0.004, 0.2, 0.004], 0.01), [False, False, False])
        self.assertEqual(estimates.holm([], 0.01), [])


if __name__ == "__main__":
    unittest.main()
