# SPDX-License-Identifier: Apache-2.0
"""Of two sessions one sentence says which is faster where both measured the same."""

import unittest

from baton.report import between
from plots.compare.example import InFolder
from plots.report.example import gpu_scan, layer, report, scan, session, simulated
from plots.report.page.pages import html_of


def pair(scale, **changes):
    return [*scan("all_scan", 100 * scale, run=f"r{scale}", **changes), *scan("ring_scan", 150 * scale, 0.001, run=f"r{scale}", **changes)]


class Sentence(unittest.TestCase):
    def answer_text(self, one, other):
        return between.sentence(session(one), session(other))

    def test_the_faster_of_two_is_named_with_how_much(self):
        self.assertRegex(self.answer_text(pair(1), pair(2)), r"^Exclusive scan, 2 MiB a rank, 4 ranks: A is faster; A's all_scan takes 100 us \[[^]]*\], and B's "
                                                      r"all_scan 2\.\d+ \[[^]]*\] times as long\.$")

    def test_what_launches_cannot_tell_is_no_difference(self):
        one = [record for record in pair(1) if record["launch"] == 1]
        self.assertIn("the launches cannot tell A from B", self.answer_text(one, pair(1.01)))

    def test_settings_are_counted(self):
        sizes = (1 << 16, 1 << 20, 1 << 21)
        text = self.answer_text([one for size in sizes for one in pair(1, state_bytes=size)],
                         [one for size in sizes for one in pair(2 if size > 1 << 16 else 0.5, state_bytes=size)])
        self.assertIn("Of 3 settings that both have, A has the lower time in 2 and B in 1; the same name has the least time in 3.", text)

    def test_processors_stand_beside_gpus(self):
        self.assertIn("4 ranks: B is faster; B's all_scan_fused takes 10.0 us", self.answer_text(pair(1), gpu_scan()))

    def test_nothing_in_common_is_said(self):
        self.assertEqual(self.answer_text(pair(1), layer()), "A and B have no setting in common: A has Exclusive scan, 2 MiB a rank, 4 ranks on "
                         "processors; B has Linear attention, both passes, 1024 tokens a rank, 4 heads of 128, f32, 4 ranks on processors.")

    def test_simulated_times_stand_beside_no_measured_ones(self):
        made = [one for name, time in (("all_scan", 1), ("ring_scan", 2)) for one in simulated(scan(name, time))]
        self.assertIn("no setting in common", self.answer_text(pair(1), made))
        self.assertTrue(self.answer_text(made, made).startswith("~ Exclusive scan, 2 MiB a rank, 4 ranks: A and B tie"), self.answer_text(made, made))


class Shown(InFolder):
    def test_it_stands_behind_the_answers_and_on_the_page(self):
        places = [self.write(f"{name}.jsonl", pair(scale)) for name, scale in (("a", 1), ("b", 2))]
        text = report(*places).stdout
        self.assertRegex(text, r"(?s)^# A: .*\n# B: .*\n\nExclusive scan, 2 MiB a rank, 4 ranks: A is faster;")
        self.assertIn("A is faster; A&#39;s all_scan", html_of(session(pair(1)), session(pair(2))))
        self.assertNotIn("is faster;", report(places[0]).stdout)


if __name__ == "__main__":
    unittest.main()
