# SPDX-License-Identifier: Apache-2.0
"""Rows of model_bench in the answer, on the page and as commands: a comparison a model, apart from those of layers."""

import unittest

from baton.report import rerun_command
from baton.report.page import tables
from baton.report.page.strips import Strips
from plots import example
from plots.report.example import STEADY, jitter, launches, layer, machine, paragraphs, session


def model(name="zeco", milliseconds=10.0, noise=0.0, **changes):
    return launches(example.model(name, milliseconds=milliseconds, **{"machine": machine(64), **changes}),
                    jitter(noise, STEADY))


def lines(**changes):
    """The three lines of two methods and the data-parallel one."""
    return (model("local", 8, line="dp", **changes) + model("zeco", 9, 0.001, line="split", **changes)
            + model("zeco", 10, **changes) + model("lasp2", 15, 0.001, **changes))


class Models(unittest.TestCase):
    def test_the_answer_names_the_fastest_its_speed_and_its_time_over_dp(self):
        found = paragraphs(lines(peak_flops=1e12, flops_per_token=1e6, flops_per_pair=0))["Model"]
        self.assertIn("tiny: 2 layers of width 128, both passes, 256 tokens a rank", found)
        self.assertIn("fastest is zeco, 10.0 ms", found)
        self.assertIn("the next, lasp2, takes 1.500 [1.496, 1.504] times as long", found)
        # 256 tokens in 10 ms (the geometric mean of launches is a little less), 1e6 flop each
        self.assertIn("zeco makes 25,601 tokens/s a rank, 2.6 % of the peak, and takes 1.25", found)

    def test_models_are_no_layers_and_a_session_without_them_says_nothing_of_them(self):
        both = paragraphs(lines(), layer("zeco", 1) + layer("lasp2", 2, 0.001))
        self.assertIn("fastest is zeco, 1000 us", both["Layer"])
        self.assertIn("fastest is zeco, 10.0 ms", both["Model"])
        self.assertNotIn("Model", paragraphs(layer("zeco", 1) + layer("lasp2", 2, 0.001)))
        self.assertNotIn("Layer", paragraphs(lines()))

    def test_what_is_beside_the_blocks_parts_comparisons(self):
        for changes in ({"beside": "sharded weights"}, {"layers": 4}, {"model": "gla-1b"}, {"width": 64}, {"tokens": 512}):
            self.assertEqual(len(session(model(), model(**changes)).comparisons), 2, changes)
        (comparison,) = session(lines()).comparisons
        self.assertEqual([row.name.name for row in comparison.competitors], ["zeco", "lasp2"])
        self.assertEqual(comparison.local_of(comparison.best).name.name, "local")

    def test_a_model_has_a_table_of_its_own(self):
        made = " ".join(one.subjects for one in tables.tables([session(lines(), layer(), layer("lasp2"))], [""], Strips().add))
        self.assertIn("Model tiny: 2 layers of width 128 on processors", made)
        self.assertIn("Linear attention on processors", made)

    def test_the_command_of_a_row_asks_for_it(self):
        full, dp = model(beside="sharded weights, head")[0], model("local", line="dp")[0]
        self.assertRegex(rerun_command.command(full), r"^\./run bench model --methods zeco .*--model tiny .*--lines full .*--fsdp --head --heads 4 ")
        self.assertNotIn("--methods", rerun_command.command(dp))
        self.assertEqual(rerun_command.program(full), "model_bench")


if __name__ == "__main__":
    unittest.main()
