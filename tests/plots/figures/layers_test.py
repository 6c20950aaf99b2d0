# SPDX-License-Identifier: Apache-2.0
"""The operator's figure takes a method apart where its parts were measured, and only there."""

import argparse
import unittest

from baton import operators
from baton.figures import layers as layers_figure
from plots.example import InFolder, layer, local, read, record, skipped_layer


class OperatorTime(InFolder):
    def draw(self, records, *arguments):
        return self.figure_of(records, "layers", *arguments)

    @staticmethod
    def bars(records, **asked):
        options = argparse.Namespace(**{"pass_": None, "ranks": None, "tokens": None, **asked})
        return {one.label: one for one in layers_figure.chosen_bars(operators.points(read(records)), options)}

    def test_draws_both_formats_and_the_same_file_again(self):
        records = [local(), layer(milliseconds=3), layer(mode="compute_only", scan="", milliseconds=4),
                   layer(mode="exposed", milliseconds=5), layer("ring_attention", scan="")]
        self.assert_draws_the_same("operator_time", lambda: self.draw(records))

    def test_the_parts_are_found_and_the_fastest_comes_first(self):
        bars = self.bars([layer(milliseconds=3), layer(mode="compute_only", scan="", milliseconds=2),
                          layer(mode="exposed", milliseconds=4), local(milliseconds=1)])
        self.assertEqual(list(bars), ["local", "zeco"])
        self.assertEqual((bars["zeco"].local_work, bars["zeco"].total, bars["zeco"].waited_for), (2, 3, 4))
        self.assertEqual(bars["local"].local_work, bars["local"].total)

    def test_a_method_without_local_work_of_its_own_is_not_split(self):
        bars = self.bars([layer("ring_attention", scan="", milliseconds=3),
                          skipped_layer("no such part", name="ring_attention", scan="", mode="compute_only")])
        self.assertIsNone(bars["ring_attention"].local_work)

    def test_rather_both_passes_then_most_ranks_then_most_methods(self):
        records = [layer(ranks=2), layer(ranks=4, tokens=2048), layer(ranks=4), local(ranks=4),
                   layer(which="forward", ranks=8)]
        self.assertEqual({(one.record["ranks"], one.record["tokens"]) for one in self.bars(records).values()},
                         {(4, 1024)})
        self.assertEqual(self.bars(records, tokens=2048)["zeco"].record["tokens"], 2048)
        self.assertEqual(self.bars(records, pass_="forward")["zeco"].record["ranks"], 8)

    def test_softmax_is_ranked_apart(self):
        bars = self.bars([layer(milliseconds=3), layer("ring_attention_softmax", milliseconds=1, gate="none", scan=""),
                          local(milliseconds=2)])
        self.assertEqual(list(bars), ["local", "zeco", "ring_attention_softmax"])
        self.assertEqual(layers_figure.places(list(bars.values())), [0, 1, 3])
        self.assertEqual(layers_figure.places(list(self.bars([layer(gate="none"), local()]).values())), [0, 1])

    def test_bars_of_another_launch_and_simulated_ones_are_told(self):
        self.draw([layer(milliseconds=3), local(run="b", commit="abc-dirty")])
        drawn = (self.folder / "operator_time.svg").read_text(encoding="utf-8")
        self.assertIn("* with times of another launch", drawn)
        self.assertIn("commit abc-dirty", drawn)
        self.draw([layer(milliseconds=3, executor="simulator", topology="far")])
        self.assertIn("simulated ranks", (self.folder / "operator_time.svg").read_text(encoding="utf-8"))

    def test_says_so_when_there_is_nothing_to_draw(self):
        self.assert_one_line(self.draw([skipped_layer("no room"), record()]), "no timed record")


if __name__ == "__main__":
    unittest.main()
