# SPDX-License-Identifier: Apache-2.0
"""The fit of a library's calls, on cells that follow a law."""

import unittest

import numpy

from baton.predict import fitting
from baton.predict.cells import Cell

GATHER, EXCHANGE = "nccl_all_gather", "nccl_all_to_all"
SHARES = [2.0**power for power in range(8, 28)]


def seconds(gpus, share):
    """A floor of 4 us, and steps of 1 us and 200 GB/s."""
    return 4e-6 + (gpus - 1) * (1e-6 + share / 200e9)


def cells_of(law=seconds, call=GATHER, gpus=(2, 4)):
    return [Cell("lab", "NCCL 2", call, count, int(count * share), law(count, share)) for count in gpus for share in SHARES]


def triples(cells):
    return [(cell.gpus, cell.bytes / cell.gpus, cell.seconds) for cell in cells]


class Curves(unittest.TestCase):
    def assert_near(self, curves, places=0.01):
        for share, few, each in zip(*curves):
            self.assertAlmostEqual(few / seconds(2, share), 1, delta=places)
            self.assertAlmostEqual((few + 6 * each) / seconds(8, share), 1, delta=3 * places)

    def test_a_law_that_is_linear_in_the_gpus_is_found(self):
        self.assert_near(fitting.curves_of(triples(cells_of())))

    def test_a_single_slow_cell_moves_little(self):
        cells = cells_of()
        cells[5] = cells[5]._replace(seconds=3 * cells[5].seconds)
        self.assert_near(fitting.curves_of(triples(cells)), 0.04)

    def test_curves_only_rise(self):
        noise = numpy.random.default_rng(1)
        curves = fitting.curves_of(triples(cells_of(lambda *place: seconds(*place) * noise.uniform(0.8, 1.2))))
        for curve in (curves.few, curves.each):
            self.assertGreaterEqual(min(numpy.diff(curve)), 0)

    def test_the_last_point_of_a_topology_is_later_than_the_one_before(self):
        points = fitting.points([1, 2, 3], [1e-6, 2e-6, 2e-6])
        self.assertGreater(points[2]["seconds"], points[1]["seconds"])


class Section(unittest.TestCase):
    def test_the_kind_of_links_is_the_slowest_that_is_as_fast_as_the_cells(self):
        for rate, kind in ((20e9, "PCIe 4"), (200e9, "NVLink 3"), (300e9, "NVLink 4"), (600e9, "NVLink 5"), (5e12, "NVLink 5")):
            with self.subTest(rate):
                self.assertEqual(fitting.kind_of(cells_of(lambda gpus, share, rate=rate: (gpus - 1) * share / rate)), kind)

    def test_a_ring_has_the_protocols_of_its_links_and_messages_have_none(self):
        found = fitting.section(cells_of() + cells_of(call=EXCHANGE), "NVLink 4", "made up")
        self.assertEqual(set(found[GATHER]["protocols"]), {"LL", "LL128", "Simple"})
        self.assertEqual(set(found[EXCHANGE]["protocols"]), {"messages"})
        self.assertIn("fitted to 40 cells of 2 to 4 GPUs, made up", found[GATHER]["source"])

    def test_no_call_starts_slower_than_a_cell_took(self):
        quick = fitting.section(cells_of(lambda gpus, share: gpus * 1e-7 + share / 1e9), "PCIe 4", "made up")
        self.assertLess(quick[GATHER]["start_seconds"], 2e-6 / 4)

    def test_a_small_share_goes_by_ll_and_a_large_one_by_simple(self):
        self.assertEqual(fitting.protocol_of("NVLink 4", 4, 2**10), "LL")
        self.assertEqual(fitting.protocol_of("NVLink 4", 4, 2**24), "Simple")


if __name__ == "__main__":
    unittest.main()
