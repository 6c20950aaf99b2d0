# SPDX-License-Identifier: Apache-2.0
"""The fit finds the numbers that made the cells, and looks at no cell but those at 8 and 16 GPUs."""

import csv
import json
import unittest

from baton import checks
from baton.paper import fitting
from plots.example import ROOT, InFolder

PUBLISHED = ROOT / "results" / "paper" / "zeco_table2.csv"


def made_cells(call, rate, blocks):
    """The fitted cells of a machine with these numbers."""
    return {(title, ranks): call + fitting.hop_bytes(title, ranks, blocks) / rate
            for title in (fitting.GATHER, fitting.SCAN) for ranks in fitting.FITTED_RANKS}


class Calibration(unittest.TestCase):
    def test_finds_the_machine_that_made_the_cells(self):
        blocks, fits = fitting.fit(made_cells(call=150e-6, rate=40e9, blocks=7))
        self.assertEqual(blocks, 7)
        for one in fits:
            self.assertAlmostEqual(one.call / 150e-6, 1, 9, one.name)
            self.assertAlmostEqual(one.rate / 40e9, 1, 9, one.name)
        self.assertAlmostEqual(fits[-1].residual, 0, 9)

    def test_a_fit_of_both_tells_how_far_it_is_off(self):
        cells = made_cells(call=150e-6, rate=40e9, blocks=4)
        cells[fitting.GATHER, 8] *= 1.1
        _, fits = fitting.fit(cells)
        self.assertGreater(fits[-1].residual, 0.01)
        self.assertLess(fits[-1].residual, 0.1)


class Program(InFolder):
    def setUp(self):
        super().setUp()
        with open(PUBLISHED, encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))

    def topologies(self, rows):
        """What is written from these rows: {name: text}."""
        path = self.folder / "published.csv"
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        fitting.write(self.folder, path)
        return {one.name: one.read_text(encoding="utf-8") for one in self.folder.glob("*.json")}

    def test_later_cells_change_nothing(self):
        honest = self.topologies(self.rows)
        for row in self.rows:
            if int(row["gpus"]) not in fitting.FITTED_RANKS:
                row["value"] = "1000"
        self.assertEqual(self.topologies(self.rows), honest)
        self.assertEqual(len(honest), 3)

    def test_writes_what_a_topology_needs(self):
        for name, text in self.topologies(self.rows).items():
            written = json.loads(text)
            self.assertEqual(f"{written['name']}.json", name)
            self.assertEqual(list(written["links"]), ["intra_node"])
            self.assertEqual(written["machine"]["nodes"] * written["machine"]["ranks_per_node"], 256)
            self.assertEqual(written["calibration"]["most_ranks"], 16)
            self.assertIn("second-hand", written["calibration"]["stands_on"])

    def test_a_missing_cell_is_named(self):
        path = self.folder / "published.csv"
        path.write_text("method,gpus,value\n", encoding="utf-8")
        with self.assertRaisesRegex(checks.ResultsError, "on 8 GPUs"):
            fitting.write(self.folder, path)


if __name__ == "__main__":
    unittest.main()
