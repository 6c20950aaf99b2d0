# SPDX-License-Identifier: Apache-2.0
"""ZeCO's table of throughput: the fit sees one column, the parts of a step add up, measured blocks take the place of
simulated ones."""

import unittest

from baton.paper.sections import zeco_throughput
from baton.paper.sections.zeco_throughput import MODEL, RANKS, SHARDED, TOKENS
from baton.paper.sources import H100, Sources
from plots.example import model
from plots.paper.shown import published, rows, tables, text

PUBLISHED = published("zeco_table_throughput_32k", "zeco_table2")
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


class Throughput(unittest.TestCase):
    def test_the_fit_sees_the_first_column_alone(self):
        found = rows(tables(zeco_throughput.section(sources()))["zeco_table6"])
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
        found = rows(tables(section)["zeco_throughput_parts"])
        self.assertEqual(found["ZeCO", "block times"], ["500"] * 4)
        self.assertEqual(found["ZeCO", "rest"][0], "0")
        steps = zeco_throughput.Steps(sources([block]), TOKENS)
        self.assertAlmostEqual(sum(zeco_throughput.parts(steps, "ZeCO", "zeco", 256).values()), steps.published["ZeCO", 256])

    def test_a_table_without_published_cells_is_simulated_and_fitted_to_nothing(self):
        shorter = [simulated(name, ranks, time / 2, tokens=16384) for name, times in STEPS.items() for ranks, time in times.items()]
        found = rows(tables(zeco_throughput.section(Sources(shorter, {}, PUBLISHED)))["zeco_table5"])
        self.assertEqual(found["ZeCO", "simulated"][0], "65,536")  # 16384 tokens in 250 ms
        self.assertTrue(all(not any(cells) for (_, kind), cells in found.items() if kind != "simulated"))


if __name__ == "__main__":
    unittest.main()
