# SPDX-License-Identifier: Apache-2.0
"""LASP-2's table of throughput: every published cell of 256K to 2048K, one constant for all, and parts that add up."""

import unittest

from baton.paper.page import Table, Text
from baton.paper.sections import lasp2_throughput
from baton.paper.sections.lasp2_throughput import CELLS, MODEL, SHARDED, TOPOLOGY
from baton.paper.sources import Sources, load_cells
from plots.example import ROOT, model

PUBLISHED = {"lasp2_throughput": load_cells(ROOT / "results" / "paper" / "lasp2_throughput.csv")}


def simulated(name, place, milliseconds, beside=SHARDED):
    ranks, length = place
    return model(name, line="dp" if name == "local" else "full", ranks=ranks, milliseconds=milliseconds, model=MODEL,
                 layers=16, beside=beside, tokens=1024 * length // ranks, executor="simulator", topology=TOPOLOGY)


def sources(step=lambda ranks, length: 36.0 * length / ranks):
    return Sources([simulated(name, place, step(*place) + (name == "lasp2")) for place in CELLS
                    for name in ("local", "lasp2")], {}, PUBLISHED)


class Throughput(unittest.TestCase):
    def test_each_published_cell_that_is_no_oom_is_there(self):
        wanted = {(row["gpus"], row["seq_len"], row["value"]) for row in PUBLISHED["lasp2_throughput"]
                  if row["value"] != "OOM" and row["seq_len"] in ("256K", "512K", "1024K", "2048K")}
        table = next(block for block in lasp2_throughput.section(sources()).blocks if isinstance(block, Table))
        shown = {(str(ranks), f"{length}K", cell.text) for (ranks, length), cell in zip(CELLS, table.rows[0].cells)}
        self.assertEqual(shown, wanted)

    def test_one_constant_fits_one_cell_and_the_parts_add_up(self):
        steps = lasp2_throughput.Steps(sources())
        self.assertAlmostEqual(lasp2_throughput.parts(steps, lasp2_throughput.FITTED)["rest"], 0)
        for place in CELLS:
            published, *parts = lasp2_throughput.parts(steps, place).values()
            self.assertAlmostEqual(sum(parts), published)

    def test_the_missing_term_is_named(self):
        told = " ".join(block.markdown for block in lasp2_throughput.section(sources()).blocks if isinstance(block, Text))
        self.assertRegex(told, r"Fitted on one cell\*\*, \d of 9 other cells are within 15 %")
        self.assertRegex(told, r"The missing term\*\* is no exchange\. .* 1,888 ms and 0\.410 ms .* meets all cells to 8\.4 %")

    def test_without_simulated_models_no_sentence_is_told(self):
        section = lasp2_throughput.section(Sources([], {}, PUBLISHED))
        self.assertNotIn("Fitted on one cell", " ".join(one.markdown for one in section.blocks if isinstance(one, Text)))


if __name__ == "__main__":
    unittest.main()
