# SPDX-License-Identifier: Apache-2.0
"""The claims of the papers' abstracts stand beside what is simulated, and beside the most ranks that were measured."""

import unittest

from baton.paper.sections import headlines
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import A100, Sources
from plots.example import layer, local, model, read
from plots.paper.shown import published, simulated

PUBLISHED = published("lasp2_relative_speed", "zeco_headlines", "zeco_table_operator_16k")
ON_A100 = {"executor": "simulator", "topology": A100, "model": headlines.LASP2_MODEL, "ranks": 64, "tokens": 32768}


def rows(made=(), measured=()):
    """{claim: (published, simulated, measured) as shown}"""
    table, = headlines.section(Sources(list(made), {"mine": read(measured)}, PUBLISHED)).blocks
    return {row.label: tuple(cell and cell.text for cell in row.cells) for row in table.rows}


class Headlines(unittest.TestCase):
    def test_gains_and_ratios_are_of_simulated_times(self):
        models = [model(name, milliseconds=time, **ON_A100) for name, time in (("lasp2", 100), ("lasp1", 120), ("ring_attention", 11300))]
        scans = [simulated(name, ranks, time, **SHAPE) for ranks in (8, 256)
                 for name, time in (("all_scan", 1), ("ring_all_gather", ranks / 64))]
        found = rows(models + scans)
        self.assertEqual(found["LASP-2 over LASP-1"][1], "+20.0 %")
        self.assertEqual(found["LASP-2 over Ring Attention"][1], "113×")
        self.assertEqual(found["All-Scan over all-gather"][1], "4.00×")

    def test_measured_are_the_most_ranks_of_one_launch(self):
        few = [layer(name, milliseconds=time, ranks=2) for name, time in (("zeco", 1), ("lasp2", 9))]
        many = [layer(name, milliseconds=time, ranks=8, run="b") for name, time in (("lasp2", 2), ("lasp1", 3))]
        apart = [layer("ring_attention", milliseconds=9, ranks=8, run="c"), local(ranks=2, milliseconds=0.5)]
        found = rows(measured=few + many + apart)
        self.assertEqual(found["LASP-2 over LASP-1"][2], "+50.0 % (8 ranks of mine, mpi, 1,024 tokens a rank)")
        self.assertIsNone(found["LASP-2 over Ring Attention"][2])
        self.assertEqual(found["1M tokens on 64 GPUs over 16K on one"][2], "2.00× (2 ranks of mine, mpi, 1,024 tokens a rank)")


if __name__ == "__main__":
    unittest.main()
