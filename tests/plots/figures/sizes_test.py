# SPDX-License-Identifier: Apache-2.0
"""The figure has a line a method that has a title, on logarithmic scales, and the bound of All-Scan."""

import unittest

from baton import exchanges
from baton.figures import sizes as sizes_figure
from plots.example import InFolder, on_gpus, record, skipped

MIB = 2**20
SWEPT = [on_gpus(name, executor, size, size / MIB) for name, executor in (
    ("all_scan_fused", "peer"), ("nccl_all_gather_scan", "nccl"), ("two_shot", "peer")) for size in (MIB, 4 * MIB)]


class TimeAgainstSize(InFolder):
    def draw(self, records, *arguments):
        return self.figure_of(records, "sizes", *arguments)

    def axes(self, records):
        figure = sizes_figure.draw(exchanges.sweeps(records)[4, "isolated"])
        return figure.axes[0]

    def test_draws_both_formats_and_the_same_file_again(self):
        self.assert_draws_the_same("time_against_size", lambda: self.draw(SWEPT))

    def test_lines_have_titles_and_the_bound_is_one(self):
        axes = self.axes(SWEPT)
        self.assertEqual({text.get_text() for text in axes.texts},
                         {"All-Scan, hand-tuned kernel", "LASP-2, ncclAllGather", "bound of All-Scan, fp32"})
        self.assertEqual((axes.get_xscale(), axes.get_yscale()), ("log", "log"))
        self.assertEqual([text.get_text() for text in axes.get_xticklabels()], ["1 MiB", "4 MiB"])
        bound = [line for line in axes.lines if line.get_linestyle() == ":"]
        self.assertEqual(list(bound[0].get_ydata()), [one["bound_seconds"] * 1e6 for one in SWEPT[:2]])

    def test_most_ranks_unless_asked(self):
        few = [on_gpus(ranks=2), on_gpus(ranks=4), on_gpus(ranks=8, cadence="graph")]
        self.draw(few)
        self.assertIn("4 × Example GPU", (self.folder / "time_against_size.svg").read_text(encoding="utf-8"))
        self.draw(few, "--ranks", "2")
        self.assertIn("2 × Example GPU", (self.folder / "time_against_size.svg").read_text(encoding="utf-8"))

    def test_says_so_when_there_is_nothing_to_draw(self):
        for records in ([record()], [skipped("no peer access", executor="peer")], [on_gpus("two_shot")]):
            self.assert_one_line(self.draw(records), "no timed record of GPUs")


if __name__ == "__main__":
    unittest.main()
