# SPDX-License-Identifier: Apache-2.0
"""Figures: at most eight lines, one colour a method, and simulated, oversubscribed and foreign points distinguished."""

import re
import unittest

from baton import looks
from baton.report.page import bars, charts, figures, lines
from plots.report.example import SIMULATED_ON, crowded, local, scan, session
from plots.report.page import pages
from plots.report.page.pages import layers, scans, simulated_each


def one_chart(make, *groups):
    (_, chart), = make(session(*groups).comparisons)
    return chart


def drawn(chart):
    kind = lines if isinstance(chart, lines.Chart) else bars
    return figures.figure(kind, chart, "", kind.times(chart))


class Lines(unittest.TestCase):
    def test_at_most_eight_and_the_others_are_named(self):
        chart = one_chart(charts.against_size, scans(ranks=(2,)))
        self.assertEqual(len(chart.lines), 8)
        self.assertEqual(len(chart.left_out), len(pages.MANY) - 8)
        self.assertTrue({"all_scan", "ring_scan", "all_gather_scan"} <= {line.name for line in chart.lines})
        for name in chart.left_out:
            self.assertIn(name, drawn(chart).caption)

    def test_each_method_has_its_colour_in_every_figure(self):
        colours = {}
        for make in (charts.against_size, charts.against_ranks):
            for _, chart in make(session(scans()).comparisons):
                for line in chart.lines:
                    self.assertEqual(colours.setdefault(line.name, line.colour), looks.look(line.name).colour)
        self.assertGreater(len(set(colours.values())), 7)

    def test_simulated_lines_are_dashed_and_have_a_tilde(self):
        figure = drawn(one_chart(charts.against_ranks, simulated_each(scans(sizes=(1 << 21,)))))
        self.assertEqual(figure.svg.count("stroke-dasharray"), 8)
        self.assertIn(">all_scan ~<", figure.svg)
        self.assertIn(SIMULATED_ON, figure.caption)
        figure = drawn(one_chart(charts.against_ranks, scans(sizes=(1 << 21,))))
        self.assertNotIn("stroke-dasharray", figure.svg)
        self.assertNotIn("~", figure.svg)

    def test_simulated_lines_join_measured_ones_only_on_a_model_of_this_machine(self):
        measured = scans(sizes=(1 << 21,), names=pages.MANY[:3])
        simulated = simulated_each(scans(ranks=(4, 64), sizes=(1 << 21,), names=pages.MANY[:3]))
        self.assertEqual(len(list(charts.against_ranks(session(measured, simulated).comparisons))), 2)
        ours = [{**one, "topology": "64 x Example CPU, 64 cores, mpi"} for one in simulated]
        chart = one_chart(charts.against_ranks, measured, ours)
        self.assertEqual({line.simulated for line in chart.lines}, {True, False})
        self.assertIn("Dashed and ~: simulated", chart.about)

    def test_ranks_without_cores_are_crosses(self):
        chart = one_chart(charts.against_ranks, crowded(scans(sizes=(1 << 21,)), 2))
        self.assertEqual({point[0] for line in chart.lines for point in line.points if point[4]}, {4})
        self.assertIn("oversubscribed", drawn(chart).caption)
        self.assertFalse(chart.weak)
        self.assertTrue(one_chart(charts.against_size, crowded(scans(ranks=(4,)), 2)).weak)

    def test_another_commit_is_a_ring(self):
        names = pages.MANY[:3]
        chart = one_chart(charts.against_size, scans(ranks=(2,), names=names),
                          scans(ranks=(2,), sizes=(1 << 23,), names=names, commit="other"))
        self.assertEqual({point[0] for line in chart.lines for point in line.points if point[4]}, {1 << 23})
        self.assertIn("Rings: of another launch or commit", chart.about)

    def test_labels_do_not_share_a_place(self):
        figure = drawn(one_chart(charts.against_size, scans(ranks=(2,)))).svg
        names = re.findall(r'<text style="[^"]*(?:bold|700) [^>]*(?: y="|translate\([\d.]+ )([\d.]+)', figure)
        self.assertGreaterEqual(len(names), 8)
        heights = sorted(map(float, names))
        self.assertTrue(all(b - a > 10 for a, b in zip(heights, heights[1:])), heights)

    def test_a_wide_interval_leaves_the_medians_readable(self):
        wild = [made for name in ("all_scan", "ring_scan") for size in (1 << 19, 1 << 21)
                for made in scan(name, 100, factors=(1, 100), state_bytes=size, case=f"{name}{size}")]
        chart = one_chart(charts.against_size, wild)
        self.assertGreater(chart.lines[0].points[0][2][1], 1e3 * chart.lines[0].points[0][1])
        self.assertLessEqual(max(lines.times(chart)), lines.FAR * chart.lines[0].points[0][1] * 1.001)
        heights = [float(y) for y in re.findall(r' y="([-\d.]+)"', drawn(chart).svg)]
        self.assertTrue(heights and all(0 <= height <= 400 for height in heights), heights)

    def test_one_method_alone_is_no_figure(self):
        self.assertEqual(list(charts.against_size(session(scans(names=("all_scan",))).comparisons)), [])

    def test_lines_that_are_all_simulated_say_so_in_the_title(self):
        found = session(local(1.0, ranks=1, case="local"), *[simulated_each(layers(ranks=ranks)) for ranks in (2, 4)])
        titles = [chart.title for _, chart in charts.against_ranks(found.comparisons)]
        self.assertTrue(titles and all(title.startswith("~ ") for title in titles), titles)


class Bars(unittest.TestCase):
    def test_a_layer_that_no_row_splits_has_no_figure(self):
        found = session(layers())
        self.assertIn("softmax", {comparison.kind for comparison in found.comparisons})
        self.assertEqual([len(chart.bars) for _, chart in charts.layers(found.comparisons)], [4])

    def test_a_bar_has_its_local_work_and_its_exposed_exchange(self):
        linear = next(chart for _, chart in charts.layers(session(layers()).comparisons))
        zeco = next(bar for bar in linear.bars if bar.name == "zeco")
        self.assertLess(zeco.local, zeco.seconds)
        self.assertLess(zeco.seconds, zeco.exposed)
        self.assertEqual(linear.bars[0].name, "local")

    def test_bars_of_another_commit_are_named(self):
        other = [{**one, "commit": "other"} if one["name"] == "lasp1" else one for one in layers()]
        made = [chart.about for _, chart in charts.layers(session(other).comparisons)]
        self.assertIn("Of another launch or commit: lasp1.", made[0])

    def test_simulated_bars_are_dashed(self):
        self.assertIn("stroke-dasharray", drawn(next(
            chart for _, chart in charts.layers(session(simulated_each(layers())).comparisons))).svg)


if __name__ == "__main__":
    unittest.main()
