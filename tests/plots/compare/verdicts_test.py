# SPDX-License-Identifier: Apache-2.0
"""Verdict by verdict, from made-up records."""

import random
import unittest

from baton import cases
from baton.compare import verdicts
from plots.compare.example import launches, record, simulated, skipped

STEADY = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0)


def times(factor, by=STEADY):
    return [factor * one for one in by]


def judged(a, b, margin=0.02):
    return verdicts.judge(cases.side_of(a, "A"), cases.side_of(b, "B"), margin)


def verdict(a, b):
    (finding,) = judged(a, b)
    return finding.verdict


class OfTimes(unittest.TestCase):
    def test_five_percent_are_slower_and_faster(self):
        self.assertEqual(verdict(launches(STEADY), launches(times(1.05), run="b")), verdicts.SLOWER)
        self.assertEqual(verdict(launches(times(1.05)), launches(STEADY, run="b")), verdicts.FASTER)

    def test_a_sure_change_within_the_margin_is_the_same(self):
        findings = judged(launches(STEADY), launches(times(1.01), run="b"))
        self.assertEqual(findings[0].verdict, verdicts.SAME)
        self.assertGreater(findings[0].interval[0], 0, "that it changed is beyond doubt")

    def test_another_margin(self):
        self.assertEqual(judged(launches(STEADY), launches(times(1.05), run="b"), 0.1)[0].verdict, verdicts.SAME)

    def test_noisy_launches_cannot_tell_and_say_how_many_would(self):
        noisy = (1.0, 1.2, 0.9, 1.1)
        finding = judged(launches(noisy), launches(times(1.05, noisy[::-1]), run="b"))[0]
        self.assertEqual(finding.verdict, verdicts.CANNOT_TELL)
        self.assertTrue(10 < finding.needs < 1000, finding.needs)

    def test_as_many_launches_as_it_says_would_tell(self):
        wide = [(-1)**number * 0.02 + 1 for number in range(4)]
        finding = judged(launches(wide), launches(times(1.06, wide), run="b"))[0]
        self.assertEqual(finding.verdict, verdicts.CANNOT_TELL)
        enough = wide * (finding.needs // 4 + 1)
        self.assertEqual(verdict(launches(enough), launches(times(1.06, enough), run="b")), verdicts.SLOWER)

    def test_one_or_two_launches_cannot_tell(self):
        for count in (1, 2):
            finding = judged(launches([1.0] * count), launches([2.0] * count, run="b"))[0]
            self.assertEqual((finding.verdict, finding.needs), (verdicts.CANNOT_TELL, 3), count)

    def test_launches_in_turns_are_compared_pair_by_pair(self):
        drift = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
        after = [1.05 * one * noise for one, noise in zip(drift, STEADY)]
        self.assertEqual(verdict(launches(drift, pairs="s"), launches(after, run="b", pairs="s")), verdicts.SLOWER)
        self.assertEqual(verdict(launches(drift), launches(after, run="b")), verdicts.CANNOT_TELL)

    def test_pairs_of_two_sessions_are_no_pairs(self):
        finding = judged(launches(STEADY, pairs="s"), launches(STEADY, run="b", pairs="t"))[0]
        self.assertFalse(finding.estimate.paired)

    def test_runs_without_launches_count_one_each(self):
        def runs(factor, name):
            return [record(seconds=factor * one * 1e-4, run=f"{name}{number}") for number, one in enumerate(STEADY)]
        finding = judged(runs(1, "a"), runs(1.05, "b"))[0]
        self.assertEqual((finding.verdict, finding.launches), (verdicts.SLOWER, (6, 6)))

    def test_cycles_are_rounds_of_one_launch(self):
        cycles = [record(cycle=cycle, seconds=seconds) for cycle, seconds in ((1, 1e-4), (2, 3e-4))]
        side = cases.side_of(cycles, "A")
        (case,) = side.cases.values()
        self.assertAlmostEqual(*case.medians().values(), 2e-4, delta=1e-6)

    def test_what_is_simulated_needs_one_launch(self):
        self.assertEqual(verdict([simulated()], [simulated()]), verdicts.SAME)
        self.assertEqual(verdict([simulated()], [simulated(seconds=105e-6)]), verdicts.SLOWER)
        self.assertEqual(verdict([simulated(seconds=0.0)], [simulated(seconds=0.0)]), verdicts.SAME)


class OfRows(unittest.TestCase):
    def test_wrong_elements_and_failures_are_wrong(self):
        wrong = [record(wrong=3, run="b")]
        failed = launches(STEADY, run="b")[:5] + [{**skipped("", run="b"), "failed": "signal 9 in rank 1"}]
        self.assertEqual(verdict(launches(STEADY), wrong), verdicts.WRONG)
        self.assertEqual(verdict(launches(STEADY), failed), verdicts.WRONG)
        self.assertEqual(verdict([record(wrong=3)], wrong), verdicts.WRONG, "it was wrong before and still is")

    def test_rows_that_went_are_missing(self):
        there = launches(STEADY) + [record("ring_scan")]
        finding = judged(there, launches(STEADY, run="b"))[0]
        self.assertEqual((finding.verdict, finding.note), (verdicts.MISSING, "no row in B"))
        finding = judged([record()], [skipped("no such machine")])[0]
        self.assertEqual((finding.verdict, finding.note), (verdicts.MISSING, "skipped: no such machine"))

    def test_rows_that_came_are_new(self):
        self.assertEqual(verdict([skipped("no such machine")], [record()]), verdicts.NEW)
        self.assertEqual({one.verdict for one in judged([record("ring_scan")], [record()])},
                         {verdicts.NEW, verdicts.MISSING})

    def test_other_chosen_blocks_lose_no_row_and_are_said(self):
        finding = judged(launches(STEADY, blocks=8), launches(STEADY, run="b", blocks=16, hops=9))[0]
        self.assertEqual((finding.verdict, finding.changes), (verdicts.SAME, ["hops 1 -> 9", "blocks 8 -> 16"]))

    def test_a_slower_row_says_what_was_measured_too(self):
        a = launches(STEADY, bound_seconds=1e-5, rounds_as_last=[3, 0])
        b = launches(times(1.05), run="b", bound_seconds=2e-5, rounds_as_last=[0, 3])
        self.assertEqual(judged(a, b)[0].changes, ["bound 10 -> 20 us", "last most often: rank 0 -> 1"])
        self.assertEqual(judged(a, a)[0].changes, [])

    def test_the_same_case_under_other_carriers_of_states_is_another(self):
        names = {cases.key_of(record(scan=scan), "A") for scan in ("all_scan", "two_shot")}
        self.assertEqual(len(names), 2)


class OfFamilies(unittest.TestCase):
    def family(self, generator, factor, count):
        """Both sides of 30 cases of ten pairs of launches each, of which the first is slower by `factor`."""
        def seconds(slow):
            return 1e-4 * slow * generator.lognormvariate(0, 0.02)

        def side(run, slow):
            return [record(f"scan_{case}", seconds(slow if case == 0 else 1), run, launch=launch, pair=f"s-{launch}")
                    for case in range(30) for launch in range(10)]
        for _ in range(count):
            yield judged(side("a", 1), side("b", factor))

    def test_equals_are_never_slower_in_20_comparisons(self):
        for findings in self.family(random.Random(7), 1, 20):
            self.assertNotIn(verdicts.SLOWER, {one.verdict for one in findings})

    def test_five_percent_are_found_among_30_cases(self):
        found = [one.case for findings in self.family(random.Random(8), 1.05, 5) for one in findings
                 if one.verdict == verdicts.SLOWER]
        self.assertGreaterEqual(len(found), 4)
        self.assertTrue(all(case.startswith("scan_0/") for case in found), found)


class ExitCodes(unittest.TestCase):
    def code(self, *words):
        finding = judged(launches(STEADY), launches(STEADY, run="b"))[0]
        return verdicts.exit_code([finding._replace(verdict=word) for word in words])

    def test_each(self):
        self.assertEqual(self.code(verdicts.SAME, verdicts.NEW), 0)
        self.assertEqual(self.code(verdicts.FASTER), 0, "faster never fails")
        for bad in (verdicts.SLOWER, verdicts.WRONG, verdicts.MISSING):
            self.assertEqual(self.code(verdicts.SAME, bad, verdicts.CANNOT_TELL), 5)
        self.assertEqual(self.code(verdicts.SAME, verdicts.CANNOT_TELL), 6)
        self.assertEqual(self.code(verdicts.NEW), 6, "nothing was compared with anything")


if __name__ == "__main__":
    unittest.main()
