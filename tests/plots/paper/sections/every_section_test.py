# SPDX-License-Identifier: Apache-2.0
"""Every section of the page, of nothing, of a few simulated records, and of all measured and published ones that are kept."""

import unittest

from baton.paper import cells, sources
from baton.paper.origins import Letters
from baton.paper.page import Figure, Table, Text
from baton.paper.published import load_cells
from baton.paper.sections import SECTIONS
from plots.example import ROOT, InFolder, model, write
from plots.paper.browser_test import records

PUBLISHED = ROOT / "results" / "paper"
# Cells of these are shown in another unit or in part.
NOT_AS_PRINTED = {"nccl_cells", "volumes", "lasp2_throughput"}


def simulated_models():
    return [model(name, line=line, ranks=ranks, milliseconds=500 + ranks, executor="simulator", topology=sources.H100, layers=20,
                  model="zeco-1b", beside=beside, tokens=32768) for ranks in (8, 64) for beside in ("", "sharded weights")
            for name, line in (("local", "dp"), ("zeco", "full"), ("lasp2", "full"))]


class EverySection(InFolder):
    def made(self, simulated):
        write(self.folder / "s.jsonl", simulated)
        found = sources.load(self.folder, ROOT / "results", PUBLISHED)
        return [section(found) for section in SECTIONS]

    def test_tables_are_whole_and_cells_know_their_source(self):
        blocks = [block for section in self.made(records() + simulated_models()) for block in section.blocks]
        tables = [block for block in blocks if isinstance(block, Table)]
        names = [block.name for block in blocks if not isinstance(block, Text)]
        named = [name for name in names if names.count(name) > 1 and sum(one.name == name for one in tables) != 1]
        self.assertEqual(named, [], "a table and a figure may share a name, two tables may not")
        for table in tables:
            for row in table.rows:
                self.assertEqual(len(row.cells), len(table.columns), (table.name, row.label, row.kind))
                for cell in filter(None, row.cells):
                    self.assertIn(cell.kind, cells.KINDS)
                    self.assertEqual(cell.kind == cells.SIMULATED, cell.origin.startswith("topology "), cell)
                    self.assertTrue(cell.text and cell.origin and (cell.kind == cells.MEASURED) >= bool(cell.run), cell)
            Letters(table.rows)
        published = {(cell.value, cell.origin) for table in tables for row in table.rows for cell in row.cells
                     if cell and cell.kind == cells.PUBLISHED}
        for path in PUBLISHED.glob("*.csv"):
            for row in load_cells(path) if path.stem not in NOT_AS_PRINTED else ():
                if row.get("method") not in ("unbalanced", "balanced", "no overlap", "overlap"):  # DistFlashAttention's ablations
                    self.assertIn((row["value"], row["source"]), published, path.name)
        self.assertTrue(all(figure.about and figure.draw for figure in blocks if isinstance(figure, Figure)))

    def test_without_records_nothing_is_made_up(self):
        empty = sources.Sources([], {}, {path.stem: load_cells(path) for path in PUBLISHED.glob("*.csv")})
        for section in SECTIONS:
            for table in (block for block in section(empty).blocks if isinstance(block, Table)):
                kinds = {cell.kind for row in table.rows for cell in row.cells if cell}
                self.assertLessEqual(kinds, {cells.PUBLISHED, cells.DERIVED}, table.name)


if __name__ == "__main__":
    unittest.main()
