# SPDX-License-Identifier: Apache-2.0
"""A row is slower, ties or cannot be told by where its interval lies to the margin, and equals seldom make a winner."""

import unittest

import numpy

from baton import estimates
from baton.report import ranking
from plots.report.example import layer, scan, session, simulated

QUIET, LOUD = (1.0, 1.001, 0.999), (1.0, 1.2, 0.85)


def ranked(*rows):
    """The Ranking of all_scan at 100 us and other rows, each (name, microseconds, factors of launches)."""
    made = [scan("all_scan", 100, factors=QUIET), *(scan(name, time, factors=factors) for name, time, factors in rows)]
    (comparison,) = session(*made).comparisons
    return ranking.rank(comparison)


def names(rows):
    return [row.name.name for row in rows]


class Verdicts(unittest.TestCase):
    def test_fastest_is_who_clears_the_margin_to_every_other(self):
        found = ranked(("two_shot", 104, QUIET), ("ring_scan", 200, LOUD))
        self.assertEqual((found.verdict, names(found.beaten)), (ranking.FASTEST, ["two_shot", "ring_scan"]))

    def test_rows_within_the_margin_tie(self):
        found = ranked(("two_shot", 101.5, QUIET), ("ring_scan", 200, QUIET))
        self.assertEqual((found.verdict, names(found.tied), names(found.beaten)), (ranking.TIE, ["two_shot"], ["ring_scan"]))

    def test_a_wide_interval_is_no_tie(self):
        found = ranked(("two_shot", 101.5, LOUD))
        self.assertEqual((found.verdict, names(found.undecided)), (ranking.CANNOT_TELL, ["two_shot"]))

    def test_an_interval_across_the_margin_is_neither_a_win_nor_a_tie(self):
        """1.028 [1.003, 1.053] of three launches is not known to be a difference that matters."""
        found = ranked(("two_shot", 102.8, (1.0, 1.0104, 0.9906)))
        low, high = found.undecided[0].ratio_to(found.first).interval
        self.assertTrue(1 < low < 1 + estimates.MARGIN < high)
        self.assertEqual(found.verdict, ranking.CANNOT_TELL)

    def test_one_unknown_row_leaves_the_comparison_open(self):
        found = ranked(("two_shot", 100.5, QUIET), ("ring_scan", 108, LOUD))
        self.assertEqual((names(found.tied), names(found.undecided), found.verdict),
                         (["two_shot"], ["ring_scan"], ranking.CANNOT_TELL))
        self.assertEqual(names(found.unbeaten), ["two_shot", "ring_scan"])

    def test_one_launch_tells_nothing(self):
        made = [scan(name, time, factors=(1.0,)) for name, time in (("all_scan", 100), ("two_shot", 100.1), ("chain", 900))]
        (comparison,) = session(*made).comparisons
        found = ranking.rank(comparison)
        self.assertEqual((found.judged, found.verdict, found.tied, found.beaten), (False, ranking.CANNOT_TELL, [], []))

    def test_a_row_with_one_launch_beside_rows_with_three_is_unknown(self):
        made = [scan("all_scan", 100), scan("two_shot", 150), scan("chain", 170)[:1]]
        (comparison,) = session(*made).comparisons
        self.assertEqual(names(ranking.rank(comparison).undecided), ["chain"])

    def test_layers_have_the_same_words(self):
        (comparison,) = session(layer("zeco", 1.0, factors=QUIET), layer("lasp2", 1.01, factors=QUIET)).comparisons
        self.assertEqual(ranking.rank(comparison).verdict, ranking.TIE)

    def test_simulated_rows_are_judged_by_the_error_of_predictions_alone(self):
        made = [simulated(scan(name, time)) for name, time in (("all_scan", 100), ("two_shot", 122), ("chain", 124))]
        (comparison,) = session(*made).comparisons
        found = ranking.rank(comparison)
        self.assertEqual((names(found.tied), found.undecided, names(found.beaten)), (["two_shot"], [], ["chain"]))


class Equals(unittest.TestCase):
    """How often the least of equals clears the margin to all others, or is called a tie with a row that it is not equal to."""

    DRAWS = 20_000

    def shares(self, spreads, launches, ratio=1.0):
        """Over many comparisons of rows with these spreads of the logarithm between launches: how often a row that is not the
        fastest is called so, and how often one that takes `ratio` times as long as the others is called a tie."""
        draw = numpy.random.default_rng(51)
        count = len(spreads)
        made = draw.normal(0, 1, (self.DRAWS, count, launches)) * numpy.array(spreads)[:, None]
        made[:, 1:] += numpy.log(ratio)
        first = made.mean(axis=2).argmin(axis=1)
        differences = made - made[numpy.arange(self.DRAWS), first][:, None]
        spread = numpy.maximum(differences.std(axis=2, ddof=1), estimates.LEAST_SPREAD)
        half = spread / numpy.sqrt(launches) * estimates.quantile(0.95, launches - 1)
        low, high = differences.mean(axis=2) - half, differences.mean(axis=2) + half
        others = numpy.arange(count) != first[:, None]
        margin = numpy.log(1 + estimates.MARGIN)
        wins = ((low > margin) | ~others).all(axis=1)
        ties = ((low >= -margin) & (high <= margin) & others).any(axis=1)
        return wins.mean(), ties.mean()

    def test_equals_make_a_winner_in_at_most_5_percent_of_comparisons(self):
        for launches in (2, 3, 5):
            for spreads in ((0.05,) * 2, (0.05,) * 3, (0.5,) * 2, (0.5,) * 10, (0.3, 0.01), (0.3, 0.3, 0.01),
                            (0.3, 0.1, 0.03, 0.01), (0.5, 0.5, *(0.01,) * 8)):
                with self.subTest(launches=launches, spreads=spreads):
                    self.assertLessEqual(self.shares(spreads, launches)[0], 0.055)

    def test_a_row_beyond_the_margin_seldom_ties(self):
        for launches in (2, 3, 5):
            for spread in (0.001, 0.01, 0.05):
                self.assertLessEqual(self.shares((spread, spread), launches, 1 + 1.01 * estimates.MARGIN)[1], 0.03)


if __name__ == "__main__":
    unittest.main()
