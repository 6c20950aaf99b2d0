# SPDX-License-Identifier: Apache-2.0
"""The operator's figure takes a method apart where its parts were measured, and only there."""

import argparse
import importlib.util
import pathlib
import tempfile
import unittest

from example import layer, local, record, run, skipped_layer, write

import results


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class OperatorTime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def draw(self, records, *arguments):
        path = write(self.folder / "r.jsonl", records)
        return run("operator_time.py", "--results", path, "--out", self.folder, *arguments)

    @staticmethod
    def bars(records, **asked):
        import operator_time
        options = argparse.Namespace(**{"pass_": None, "ranks": None, "tokens": None, **asked})
        return {one.label: one for one in operator_time.chosen_bars(results.points(records), options)}

    def test_draws_both_formats(self):
        done = self.draw([local(), layer(milliseconds=3), layer(mode="compute_only", scan="", milliseconds=4),
                          layer(mode="exposed", milliseconds=5), layer("ring_attention", scan="")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "operator_time.png").read_bytes().startswith(b"\x89PNG"))
        self.assertIn("<svg", (self.folder / "operator_time.svg").read_text(encoding="utf-8"))

    def test_the_same_records_draw_the_same_file(self):
        records = [local(), layer(milliseconds=3)]
        self.draw(records)
        first = (self.folder / "operator_time.svg").read_bytes()
        self.draw(records)
        self.assertEqual((self.folder / "operator_time.svg").read_bytes(), first)

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

    def test_says_so_when_there_is_nothing_to_draw(self):
        done = self.draw([skipped_layer("no room"), record()])
        self.assertEqual(done.returncode, 1)
        self.assertIn("no timed record", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
