# SPDX-License-Identifier: Apache-2.0
"""The maps of layers with a delta rule: who competes, what a method with another scan is called, and published timings."""

import unittest

from baton.paper.sections import delta_layers
from baton.paper.sources import MANY_H100, Sources
from plots.paper.shown import published, simulated_layer

KIMI = delta_layers.MODELS[0]


def simulated(name, milliseconds, ranks=64, tokens=2048, **changes):
    return simulated_layer(name, milliseconds, MANY_H100, **{
        "ranks": ranks, "tokens": tokens, "heads": KIMI.heads, "attention": KIMI.attention, "blocks_asked": delta_layers.BLOCKS, "sent_bytes": 5, "scan": "all_scan", **changes})


def sources(*records):
    return Sources(list(records), {}, published(delta_layers.PUBLISHED))


class DeltaLayers(unittest.TestCase):
    def test_the_fastest_of_each_place_with_its_scan(self):
        found = delta_layers.places(sources(
            simulated("zeco", 2.0), simulated("zeco", 1.0, scan="hierarchical_scan"), simulated("lasp2", 9.0),
            simulated("zeco", 1.0, 8)), KIMI)
        self.assertEqual({place: (one.name, one.runner_up) for place, one in found.items()},
                         {(64, 2048): ("zeco + hierarchical_scan", "zeco"), (8, 2048): ("zeco", None)})

    def test_published_timings_stand_in_their_settings(self):
        text, table = delta_layers.published(sources())
        rows = {(row.label, column): cell.value for row in table.rows
                for column, cell in zip(table.columns, row.cells) if cell}
        self.assertEqual(len(rows), len(sources().published[delta_layers.PUBLISHED]) - 4, "two projects have two settings")
        self.assertIn("four rows and slower in one", text.markdown)
        faster = [float(row.cells[1].value) > float(row.cells[0].value) if "ms" in row.kind else
                  float(row.cells[1].value) < float(row.cells[0].value) for row in table.rows if row.cells[0] and row.cells[1]]
        self.assertEqual((faster.count(True), faster.count(False)), (4, 1))


if __name__ == "__main__":
    unittest.main()
