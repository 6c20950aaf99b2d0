# SPDX-License-Identifier: Apache-2.0
"""Every launch names a topology that exists, and a launch that fails is told in one line."""

import json
import unittest

from plots.example import InFolder, run

import paper_simulations
from paper.sections import lasp2_throughput


class Simulations(InFolder):
    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def simulate(self):
        return run("paper_simulations.py", "--programs", self.folder, "--out", self.folder / "out")

    def test_launches_name_topologies_that_exist(self):
        for launch in paper_simulations.suite(self.folder, 4):
            if launch.topology.parent != self.folder:
                self.assertTrue(launch.topology.is_file(), launch.topology)

    def test_every_launch_leaves_its_records_and_old_ones_go(self):
        for name in (paper_simulations.COLLECTIVE, paper_simulations.OPERATOR, paper_simulations.MODEL):
            self.program(name, 'for last; do [ "$before" = -J ] && echo "{}" > "$last"; before=$last; done; true')
        out = self.folder / "out"
        out.mkdir()
        (out / "old.jsonl").write_text("", encoding="utf-8")
        done = self.simulate()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list(out.glob("*.jsonl"))), len(paper_simulations.suite(out, 4)))
        self.assertFalse((out / "old.jsonl").exists())

    def test_without_the_bench_of_models_the_others_run(self):
        for name in (paper_simulations.COLLECTIVE, paper_simulations.OPERATOR):
            self.program(name, 'for last; do [ "$before" = -J ] && echo "{}" > "$last"; before=$last; done; true')
        done = self.simulate()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without model_bench, which is not built here", done.stdout)

    def test_the_machine_of_lasp2_has_nodes_for_all_its_ranks(self):
        paper_simulations.write_wide(self.folder)
        machine = json.loads((self.folder / f"{lasp2_throughput.TOPOLOGY}.json").read_text(encoding="utf-8"))["machine"]
        self.assertEqual(machine["nodes"] * machine["ranks_a_node"], max(lasp2_throughput.RANKS))

    def test_a_launch_that_fails_is_one_line(self):
        for name in (paper_simulations.COLLECTIVE, paper_simulations.OPERATOR):
            self.program(name, "echo no such key >&2; exit 2")
        self.assert_one_line(self.simulate(), "ended with status 2: no such key")


if __name__ == "__main__":
    unittest.main()
