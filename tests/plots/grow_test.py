# SPDX-License-Identifier: Apache-2.0
"""A topology of many machines like one that was calibrated."""

import json
import os
import pathlib
import tempfile
import unittest

from plots.example import ROOT, run_here

ONE = ROOT / "topologies" / "shared_memory_host.json"


def grow(path, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "many.json"
        done = run_here("grow", path, "--out", out, *arguments)
        return done, json.loads(out.read_text(encoding="utf-8")) if out.exists() else None


class Grow(unittest.TestCase):
    def test_has_as_many_machines_as_the_ranks_need(self):
        one = json.loads(ONE.read_text(encoding="utf-8"))
        each = one["machine"]["ranks_per_node"]
        done, many = grow(ONE, "--ranks", str(3 * each - 1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((many["machine"]["nodes"], many["machine"]["ranks_per_node"]), (3, each))
        self.assertEqual(many["links"]["intra_node"], one["links"]["intra_node"])
        self.assertNotIn("node_measured", many["links"]["inter_node"])
        self.assertIn("taken to be", many["links"]["inter_node"]["source"])

    def test_refuses_what_has_nodes_already_in_one_line(self):
        done, many = grow(ROOT / "topologies" / "dgx-h100-32x8.json")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("32 nodes", done.stderr)
        self.assertIsNone(many)

    def test_refuses_what_is_no_topology_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "odd.json")
            whole = json.loads(ONE.read_text(encoding="utf-8"))
            for odd in ([], 5, {"machine": 5}, {**whole, "machine": {"nodes": 1, "ranks_per_node": 0}}, {**whole, "links": []}):
                path.write_text(json.dumps(odd), encoding="utf-8")
                done = grow(path)[0]
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            path.unlink()
            os.mkfifo(path)  # which has no writer
            self.assertEqual(grow(path)[0].stderr, f"grow: {path}: it is no file\n")

    def test_an_output_that_is_a_folder_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_here("grow", ONE, "--out", folder)
            self.assertEqual((done.returncode, done.stderr), (2, f"grow: {folder}: it is a directory, expected a file\n"))


if __name__ == "__main__":
    unittest.main()
