# SPDX-License-Identifier: Apache-2.0
"""ZeCO's table of throughput: the fit sees one column, the parts of a step add up, measured blocks take the place of
simulated ones, and a missing term is named."""

import unittest

from baton.paper.page import Table, Text
from baton.paper.sections import zeco_throughput
from baton.paper.sections.zeco_throughput import MODEL, RANKS, SHARDED, TOKENS
from baton.paper.sources import H100, Sources, load_cells
from plots.example import ROOT, model

PAPER = ROOT / "results" / "paper"
PUBLISHED = {name: load_cells(PAPER / f"{name}.csv") for name in ("zeco_table_throughput_32k", "zeco_table2")}
STEPS = {"local": {8: 500, 64: 510, 128: 510, 256: 512}, "zeco": {8: 500, 64: 511, 128: 511, 256: 513},
         "lasp2": {8: 500, 64: 520, 128: 580, 256: 700}, "lasp1": {8: 501, 64: 513},
         "lasp1_as_released": {8: 1000, 64: 7000}}


def simulated(name, ranks, milliseconds, **changes):
    return model(name, line="dp" if name == "local" else "full", ranks=ranks, milliseconds=milliseconds, **{
        "executor": "simulator", "topology": H100, "model": MODEL, "layers": 20, "beside": SHARDED, "tokens": TOKENS,
        **changes})


def sources(measured=(), steps=None):
    records = [simulated(name, ranks, time) for name, times in (steps or STEPS).items() for ranks, time in times.items()]
    records += [simulated("local", ranks, 490, beside="") for ranks in RANKS]
    return Sources(records, {"mine": list(measured)}, PUBLISHED)


def rows(section, name):
    """{(label, kind): texts} of a table."""
    table = next(block for block in section.blocks if isinstance(block, Table) and block.name == name)
    found, label = {}, ""
    for row in table.rows:
        label = row.label or label
        found[label, row.kind] = [cell and cell.text for cell in row.cells]
    return found


def text(section):
    return " ".join(block.markdown for block in section.blocks if isinstance(block, Text))


class Throughput(unittest.TestCase):
    def test_the_fit_sees_the_first_column_alone(self):
        found = rows(zeco_throughput.section(sources()), "zeco_table6")
        self.assertEqual(found["ZeCO", "published"], ["47369", "44468", "43278", "40967"])
        self.assertEqual(found["DP baseline", "simulated, fitted at 8 GPUs"][0], "49,633")
        # 32768 tokens in 660.2 + 10 ms
        self.assertEqual(found["DP baseline", "simulated, fitted at 8 GPUs"][1], "48,892")
        self.assertEqual(found["LASP-1", "simulated, fitted at 8 GPUs"][2:], [None, None])

    def test_the_parts_of_a_step_add_up(self):
        steps = zeco_throughput.Steps(sources(), TOKENS)
        for title, name, _ in zeco_throughput.METHODS:
            for ranks in (8, 64):
                parts = zeco_throughput.parts(steps, title, name, ranks)
                self.assertAlmostEqual(sum(parts.values()), steps.published[title, ranks])
        self.assertAlmostEqual(zeco_throughput.parts(steps, "LASP-2", "lasp2", 64)["exchange"], 10)
        self.assertAlmostEqual(zeco_throughput.parts(steps, "LASP-2", "lasp2", 8)["rest"], 0)

    def test_measured_blocks_stand_in_place_of_simulated_ones(self):
        section = zeco_throughput.section(sources())
        self.assertIn("No record of `results/` has the time of such a block on a GPU yet", text(section))
        # Two layers in 50 ms: 500 for 20.
        block = model("local", line="dp", ranks=1, milliseconds=50, model=MODEL, layers=2, tokens=TOKENS, executor="nccl",
                      device={"gpu": "Example GPU"}, commit="abc")
        section = zeco_throughput.section(sources([block]))
        self.assertIn("Block times are measured: 25.0 ms a block forward and backward on one Example GPU", text(section))
        found = rows(section, "zeco_throughput_parts")
        self.assertEqual(found["ZeCO", "block times"], ["500"] * 4)
        self.assertEqual(found["ZeCO", "rest"][0], "0")
        steps = zeco_throughput.Steps(sources([block]), TOKENS)
        self.assertAlmostEqual(sum(zeco_throughput.parts(steps, "ZeCO", "zeco", 256).values()), steps.published["ZeCO", 256])

    def test_the_verdict_counts_what_is_near_and_names_the_missing_term(self):
        told = text(zeco_throughput.section(sources()))
        self.assertRegex(told, r"Fitted on the 8-GPU column alone\*\*, \d of 9 other cells are within 15 %")
        self.assertIn("The missing term** is the exchange itself", told)
        self.assertIn("40 times a step", told)

    def test_a_table_without_published_cells_is_simulated_and_fitted_to_nothing(self):
        shorter = [simulated(name, ranks, time / 2, tokens=16384) for name, times in STEPS.items() for ranks, time in times.items()]
        found = rows(zeco_throughput.section(Sources(shorter, {}, PUBLISHED)), "zeco_table5")
        self.assertEqual(found["ZeCO", "simulated"][0], "65,536")  # 16384 tokens in 250 ms
        self.assertTrue(all(not any(cells) for (_, kind), cells in found.items() if kind != "simulated"))

    def test_the_order_is_told_as_it_is(self):
        told = text(zeco_throughput.section(sources()))
        self.assertIn("The order of methods** is not the published one at 64 GPUs before any fit", told)
        swapped = {**STEPS, "lasp1": {8: 501, 64: 900}}
        self.assertIn("The order of methods** is the published one", text(zeco_throughput.section(sources(steps=swapped))))

    def test_without_simulated_models_the_published_cells_stay(self):
        section = zeco_throughput.section(Sources([], {}, PUBLISHED))
        self.assertEqual(rows(section, "zeco_table6")["DP baseline", "published"][0], "49633")
        self.assertNotIn("missing term", text(section))


if __name__ == "__main__":
    unittest.main()
