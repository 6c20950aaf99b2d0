# SPDX-License-Identifier: Apache-2.0
"""Ticks are round and inside, labels keep apart, long names are cut where they may be, and a page gets no names twice."""

import re
import unittest

from baton import checks, style
from plots.example import InFolder, record, run, write


class Ticks(unittest.TestCase):
    def ticks(self, low, high):
        figure, axes = style.placed_axes(400, 300, 50, 10, 390, 250)
        axes.set(yscale="log", ylim=(low, high))
        style.plain_log(axes.yaxis)
        figure.draw_without_rendering()
        return [f"{tick:g}" for tick in axes.get_yticks() if 0.999 * low <= tick <= 1.001 * high]

    def test_several_decades(self):
        self.assertEqual(self.ticks(1.5e-6, 8e-3), ["1e-05", "0.0001", "0.001"])

    def test_little_more_than_a_decade(self):
        self.assertEqual(self.ticks(0.9, 21), ["1", "2", "5", "10", "20"])

    def test_a_small_part_of_a_decade(self):
        self.assertGreater(len(self.ticks(1.01e-3, 1.3e-3)), 2)


class Spread(unittest.TestCase):
    def test_labels_with_room_stay(self):
        self.assertEqual(style.spread([50, 10], [10, 10], 0, 100), [50, 10])

    def test_labels_at_one_place_move_apart_and_stay_inside(self):
        heights = [14, 28, 14, 14]
        placed = style.spread([95, 95, 96, 97], heights, 0, 100)
        edges = sorted((middle - height / 2, middle + height / 2) for middle, height in zip(placed, heights))
        for (_, lower), (upper, _) in zip(edges, edges[1:]):
            self.assertLessEqual(lower, upper)
        self.assertTrue(edges[0][0] >= 0 and edges[-1][1] <= 100, edges)


class Texts(unittest.TestCase):
    def test_names_are_cut_behind_an_underscore(self):
        self.assertEqual(style.wrapped("nccl_all_gather_scan_window", 17), "nccl_all_gather_\nscan_window")
        self.assertEqual(style.wrapped("zeco", 17), "zeco")
        self.assertEqual(style.wrapped("x" * 20, 17), f"{'x' * 17}\nxxx")


class Drawn(InFolder):
    def test_nothing_is_said_of_missing_glyphs_or_of_caches_that_cannot_be_kept(self):
        records = write(self.folder / "r.jsonl", [record(name, ranks, machine={"cpu": "\u6c49 \U0001f600", "cores": 8}) for name in ("all_scan", "two_shot") for ranks in (2, 4)])
        nowhere = dict.fromkeys(("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), "")
        for words in (("figure", "ranks", "--results", records, "--out", self.folder), ("report", records, "--out", self.folder / "page.html")):
            with self.subTest(words[0]):
                done = run(*words, HOME="/proc/1/none", **nowhere)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_text_that_no_image_has_room_for_is_named(self):
        for place in ("set_title", "set_xlabel", "text"):
            figure, axes = style.subplots((4, 4))
            words = "x" * 5000
            axes.text(0, 0, words) if place == "text" else getattr(axes, place)(words)
            with self.subTest(place), self.assertRaisesRegex(checks.ResultsError, "has 5000 letters, .*: x{40}[.]{3}$"):
                style.drawn(figure, "png")


class Inlined(unittest.TestCase):
    def inlined(self):
        figure, axes = style.placed_axes(400, 300, 50, 10, 390, 250)
        axes.plot([1, 2], [1, 2], marker="o", gid="point")
        axes.text(1, 1, "<b>")
        return style.inlined(figure, 'a "b"', {"point": "x < y"})

    def test_words_cannot_become_elements(self):
        made = self.inlined()
        self.assertIn(">&lt;b&gt;<", made)
        self.assertIn('aria-label="a &quot;b&quot;"', made)
        self.assertIn("<title>x &lt; y</title>", made)

    def test_it_is_the_same_each_time_and_has_no_name_but_those_it_refers_to(self):
        made = self.inlined()
        self.assertEqual(made, self.inlined())
        names = re.findall(r' id="([^"]+)"', made)
        self.assertTrue(names)
        self.assertFalse([name for name in names if f"#{name}" not in made])


if __name__ == "__main__":
    unittest.main()
