# SPDX-License-Identifier: Apache-2.0
"""Every section of the page, of nothing, of a few simulated records, and of all measured and published ones that are kept."""

import unittest

from baton.paper import cells, sources
from baton.paper.origins import Letters
from baton.paper.page import Figure, Table, Text
from baton.paper.published import load_cells
from baton.paper.sections import SECTIONS, measured_against_predicted, predicted_from_two_cells, scaling, volumes
from plots.example import ROOT, InFolder, model, record, skipped, write
from plots.paper.browser_test import records
from plots.paper.shown import published, rows, simulated, tables, text

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
        found = [block for block in blocks if isinstance(block, Table)]
        names = [block.name for block in blocks if not isinstance(block, Text)]
        named = [name for name in names if names.count(name) > 1 and sum(one.name == name for one in found) != 1]
        self.assertEqual(named, [], "a table and a figure may share a name, two tables may not")
        for table in found:
            for row in table.rows:
                self.assertEqual(len(row.cells), len(table.columns), (table.name, row.label, row.kind))
                for cell in filter(None, row.cells):
                    self.assertIn(cell.kind, cells.KINDS)
                    self.assertEqual(cell.kind == cells.SIMULATED, cell.origin.startswith("topology "), cell)
                    self.assertTrue(cell.text and cell.origin and (cell.kind == cells.MEASURED) >= bool(cell.run), cell)
            Letters(table.rows)
        published = {(cell.value, cell.origin) for table in found for row in table.rows for cell in row.cells
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


class SmallSections(unittest.TestCase):
    def section(self, made, simulated=(), measured=()):
        return made.section(sources.Sources(list(simulated), {"mine": list(measured)}, published("zeco_table2")))

    def test_a_case_that_could_not_be_simulated_is_blank_with_its_reason(self):
        table, = tables(self.section(scaling, [simulated("two_shot", 8, topology=sources.MANY_H100), skipped(
            "about 200 million steps", name="two_shot", ranks=16384, executor="simulator", topology=sources.MANY_H100, blocks_asked=1)])).values()
        self.assertIn("Skipped: `two_shot` on 16,384 ranks (about 200 million steps).", table.notes)
        self.assertIn("`two_shot` on 16 to 8,192.", " ".join(table.notes))
        self.assertEqual(sum(cell is not None for row in table.rows for cell in row.cells), 1)

    def test_volumes_are_what_was_counted(self):
        table, = tables(self.section(volumes, [simulated("ring_scan", 8, sent_bytes=2 * 2**20, messages=7, hops=7)])).values()
        self.assertEqual([cell.value for cell in table.rows[0].cells if cell], ["2", "1", "0.875", "7"])

    def test_predictions_of_a_machine_become_an_error_table(self):
        table, = tables(self.section(measured_against_predicted, (), [
            record(ranks=2, milliseconds=1.0, predicted_seconds=2e-3, topology="mine"),
            record("ring_scan", ranks=4, milliseconds=1.0, predicted_seconds=0.5e-3, extrapolated="far")])).values()
        found = rows(table)
        self.assertEqual(found["all", "derived"][:3], ["2", "1.00", "100"])  # 2 and a half
        self.assertEqual(found["ranks 2", "derived"][1], "2.00")
        self.assertIn("1 of 2 rows are extrapolated", " ".join(table.notes))

    def test_what_was_fitted_is_no_prediction_and_one_beyond_a_quarter_is_reported(self):
        for cells_of, said in (({8: 9.0, 32: 1.6, 64: 2.5}, "All 2 predicted cells are within 25 %"),
                               ({32: 1.6, 64: 5.086}, "1 of the 2 predicted cells off by more than 25 %; the worst is AllGather (LASP-2) on 64 "
                                                      "GPUs, +100.0 %")):
            made = [simulated("ring_all_gather", ranks, time, topology="fitted-all-gather") for ranks, time in cells_of.items()]
            self.assertIn(said, text(self.section(predicted_from_two_cells, made)))


if __name__ == "__main__":
    unittest.main()
