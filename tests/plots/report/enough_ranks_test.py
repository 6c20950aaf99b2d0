# SPDX-License-Identifier: Apache-2.0
"""Where more ranks stop to pay: the last number of ranks that gains by more than the interval, or the simulator's error."""

import unittest

from plots import example
from plots.report.example import STEADY, jitter, launches, machine, paragraphs, simulated

LENGTH = 8192


def prefill(milliseconds, name="zeco", length=LENGTH, factors=STEADY, noise=0.001, **changes):
    """The launches of one sequence on 1, 2, 4 .. ranks, which take these times."""
    found = []
    for number, time in enumerate(milliseconds):
        ranks = 2**number
        made = example.model(name, milliseconds=time, **{
            "ranks": ranks, "tokens": length // ranks or 1, "sequence": length, "pass": "forward", "direction": "forward",
            "machine": machine(64), **changes})
        steps = example.read(launches(made, jitter(noise * (number + 1 == len(milliseconds)), factors)))
        found += [[{**one, "contest": contest(one, length)} for one in steps]]
    return found


def contest(one, length):
    """What competes with a record: all of its sequence, on as many ranks."""
    return one["contest"].replace(f"tokens:{one['tokens']}", f"forward/sequence:{length}" if length else "tokens:1")


class EnoughRanks(unittest.TestCase):
    def said(self, *groups):
        return paragraphs(*(one for group in groups for one in group))["Ranks"]

    def test_the_least_time_and_the_last_number_of_ranks_that_gains(self):
        text = self.said(prefill([80, 50, 30, 40]))
        self.assertIn("tiny: 2 layers of width 128, forward pass, f32: the ranks of least time. Gains that may be less than 2 %", text)
        self.assertRegex(text, r"8192 tokens: zeco 30.0 ms \[[^]]+\] on 4 ranks, more ranks stop to pay at P = 4; "
                               r"one rank alone 80.0 ms \[[^]]+\]\.")

    def test_a_gain_within_the_margin_is_none(self):
        text = self.said(prefill([80, 50, 49.8]))
        self.assertIn("zeco 49.8 ms", text)
        self.assertIn("on 4 ranks, more ranks stop to pay at P = 2;", text)

    def test_a_gain_that_the_launches_cannot_tell_is_none(self):
        self.assertIn("on 4 ranks, more ranks stop to pay at P = 2;", self.said(prefill([80, 50, 45], noise=0.2)))

    def test_small_steps_count_together(self):
        self.assertIn("stop to pay at P = 4;", self.said(prefill([80, 79.9, 50, 49.9])))
        self.assertIn("on 4 ranks, more ranks may pay;", self.said(prefill([80, 79, 78])))

    def test_the_most_ranks_may_not_be_enough(self):
        self.assertRegex(self.said(prefill([80, 40, 20, 11])), r"zeco 11\.0 ms \[[^]]+\] on 8 ranks, more ranks may pay;")

    def test_each_method_and_each_sequence_has_its_own_under_one_title(self):
        text = self.said(prefill([80, 50, 60]), prefill([80, 70, 90], "whole"), prefill([160, 90, 50], length=16384))
        self.assertRegex(text, r"8192 tokens: zeco 50.0 ms .* P = 2; whole 70.0 ms \[[^]]+\] on 2 ranks, more ranks stop to pay at P = 2; "
                               r"one rank alone .* 16384 tokens: zeco 50.0 ms \[[^]]+\] on 4 ranks, more ranks may pay;")
        self.assertEqual(text.count("of least time"), 1)

    def test_one_launch_tells_nothing(self):
        self.assertIn("zeco 50.0 ms on 2 ranks, where more stop to pay the launches cannot tell;",
                      self.said(prefill([80, 50, 60], factors=(1.0,))))

    def test_simulated_gains_exceed_the_error_of_predictions(self):
        found = [simulated(one) for one in prefill([80, 50, 45, 44])]
        text = paragraphs(*found)["~ Ranks"]
        self.assertIn("~ 8192 tokens: zeco ~44.0 ms on 8 ranks, more ranks stop to pay at P = 2; one rank alone ~80.0 ms.", text)
        self.assertIn("f32, simulated on somewhere-32x8: the ranks of least time. Gains that may be less than 23 %", text)
        self.assertNotIn("Ranks", paragraphs(*found))

    def test_nothing_is_said_of_one_number_of_ranks_or_of_no_sequence(self):
        self.assertNotIn("Ranks", paragraphs(*prefill([80])))
        self.assertNotIn("Ranks", paragraphs(*prefill([80, 50], length=0)))


if __name__ == "__main__":
    unittest.main()
