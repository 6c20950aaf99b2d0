# SPDX-License-Identifier: Apache-2.0
"""Ticks are round and inside, labels keep apart, long names are cut where they may be."""

import unittest

from baton.report.page import svg


class Ticks(unittest.TestCase):
    def test_several_decades(self):
        self.assertEqual([f"{tick:g}" for tick in svg.log_ticks(1.5e-6, 8e-3)], ["1e-05", "0.0001", "0.001"])

    def test_less_than_a_decade(self):
        self.assertEqual([f"{tick:g}" for tick in svg.log_ticks(0.9, 21)], ["1", "2", "5", "10", "20"])
        for tick in svg.log_ticks(1.01e-3, 1.3e-3):
            self.assertTrue(1.01e-3 <= tick <= 1.3001e-3, tick)
        self.assertGreater(len(svg.log_ticks(1.01e-3, 1.3e-3)), 2)

    def test_never_more_than_asked_for(self):
        for high in (1.1, 3, 9, 50, 1e4, 1e9):
            for most in (3, 6):
                self.assertLessEqual(len(svg.log_ticks(1, high, most)), most)
                self.assertLessEqual(len(svg.linear_ticks(0, high, most)), most + 1)


class Spread(unittest.TestCase):
    def test_labels_with_room_stay(self):
        self.assertEqual(svg.spread([50, 10], [10, 10], 0, 100), [50, 10])

    def test_labels_at_one_place_move_apart_and_stay_inside(self):
        heights = [14, 28, 14, 14]
        placed = svg.spread([95, 95, 96, 97], heights, 0, 100)
        edges = sorted((middle - height / 2, middle + height / 2) for middle, height in zip(placed, heights))
        for (_, lower), (upper, _) in zip(edges, edges[1:]):
            self.assertLessEqual(lower, upper)
        self.assertTrue(edges[0][0] >= 0 and edges[-1][1] <= 100, edges)


class Texts(unittest.TestCase):
    def test_names_are_cut_behind_an_underscore(self):
        self.assertEqual(svg.wrapped("nccl_all_gather_scan_window", 17), ["nccl_all_gather_", "scan_window"])
        self.assertEqual(svg.wrapped("zeco", 17), ["zeco"])
        self.assertEqual(svg.wrapped("x" * 20, 17), ["x" * 17, "xxx"])

    def test_words_cannot_become_elements(self):
        self.assertIn("&lt;b&gt;", svg.text(1, 2, "<b>"))
        self.assertIn("&quot;", svg.picture(1, 1, [], 'a "b"'))


if __name__ == "__main__":
    unittest.main()
