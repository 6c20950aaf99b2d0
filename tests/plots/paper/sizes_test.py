# SPDX-License-Identifier: Apache-2.0
"""The figure has a line a method that has a title, on logarithmic scales, and the bound of All-Scan."""

import unittest

from baton import exchanges
from baton.paper import sizes as sizes_figure
from plots.example import on_gpus

MIB = 2**20
SWEPT = [on_gpus(name, executor, size, size / MIB) for name, executor in (
    ("all_scan_fused", "peer"), ("nccl_all_gather_scan", "nccl"), ("two_shot", "peer")) for size in (MIB, 4 * MIB)]


class TimeAgainstSize(unittest.TestCase):
    def axes(self, records):
        figure = sizes_figure.draw(exchanges.sweeps(records)[4, "isolated"])
        return figure.axes[0]

    def test_lines_have_titles_and_the_bound_is_one(self):
        axes = self.axes(SWEPT)
        self.assertEqual({text.get_text() for text in axes.texts},
                         {"All-Scan, hand-tuned kernel", "LASP-2, ncclAllGather", "bound of All-Scan, fp32"})
        self.assertEqual((axes.get_xscale(), axes.get_yscale()), ("log", "log"))
        self.assertEqual([text.get_text() for text in axes.get_xticklabels()], ["1 MiB", "4 MiB"])
        bound = [line for line in axes.lines if line.get_linestyle() == ":"]
        self.assertEqual(list(bound[0].get_ydata()), [one["bound_seconds"] * 1e6 for one in SWEPT[:2]])


if __name__ == "__main__":
    unittest.main()
