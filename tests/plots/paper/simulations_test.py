# SPDX-License-Identifier: Apache-2.0
"""Every launch is one that the benches take, is kept once it is done, and costs no other one if it fails."""

import concurrent.futures
import json
import os
import signal
import subprocess
import unittest
import unittest.mock

from baton.paper import simulations
from baton.paper.sections import lasp2_throughput
from plots import example
from plots.example import BENCHES, InFolder, run

ALL = (simulations.COLLECTIVE, simulations.OPERATOR, simulations.MODEL)
# Writes one record into the last argument of -J, as the benches do.
WRITES = 'for last; do [ "$before" = -J ] && echo "{}" > "$last"; before=$last; done; true'


def on_few_ranks(arguments):
    """The arguments with one number of ranks, at most 8, so that a dry run takes a moment.

    What is refused for its many ranks is not seen here: CI runs the launches as they stand."""
    words = arguments.split()
    place = words.index("--ranks") + 1
    words[place] = str(min(8, *map(int, words[place].split(","))))
    return words


class Simulations(InFolder):
    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def simulate(self):
        return run("simulate", "--programs", self.folder, "--out", self.folder / "out")

    def records(self):
        return {path: path.stat().st_mtime_ns for path in (self.folder / "out").glob("*.jsonl")}

    @unittest.skipUnless(BENCHES, "no benches")
    def test_the_benches_take_every_launch(self):
        simulations.write_wide(self.folder)
        launches = simulations.suite(self.folder, simulations.fitting.write(self.folder))

        def dry(launch):
            return subprocess.run([BENCHES[launch.program], "--executor", "simulator", "--topology", launch.topology, "--dry-run",
                                   *on_few_ranks(launch.arguments)], capture_output=True, text=True, check=False)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            built = [launch for launch in launches if launch.program in BENCHES]
            for launch, done in zip(built, pool.map(dry, built)):
                self.assertEqual(done.returncode, 0, f"{launch.program} {launch.arguments}\n{done.stderr}")

    def test_every_launch_leaves_its_records_which_are_kept_and_old_ones_go(self):
        for name in ALL[:2]:
            self.program(name, WRITES)
        out = self.folder / "out"
        out.mkdir()
        (out / "simulated-old.jsonl").write_text("", encoding="utf-8")
        done = self.simulate()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("without model_bench, which is not built here", done.stdout)
        first = self.records()
        count = sum(launch.program in ALL[:2] for launch in simulations.suite(out, 4))
        self.assertEqual(len(first), count)
        self.assertFalse((out / "simulated-old.jsonl").exists())
        self.assertIn(f"{count - 1} of {count}: ", done.stdout)
        self.assertIn("left", done.stdout)
        self.program(simulations.COLLECTIVE, WRITES + " # built at another commit")
        done = self.simulate()
        self.assertEqual(self.records(), first)
        self.assertIn(f"{count} of {count} launches are there from an earlier run", done.stdout)

    def test_other_sources_have_other_records_wherever_they_lie(self):
        launch = simulations.suite(self.folder, 4)[0]
        names = []
        for step, text in enumerate(("", "a", "b", "b")):
            root = self.folder / str(step)
            (root / "harness").mkdir(parents=True)
            (root / "harness" / "a.cpp").write_text(text, encoding="utf-8")
            with unittest.mock.patch.object(simulations, "SOURCES", root):
                names.append(simulations.records_of(self.folder, launch))
        self.assertEqual(len(set(names)), 3)
        self.assertEqual(names[2], names[3])

    def test_the_machine_of_lasp2_has_nodes_for_all_its_ranks(self):
        simulations.write_wide(self.folder)
        machine = json.loads((self.folder / f"{lasp2_throughput.TOPOLOGY}.json").read_text(encoding="utf-8"))["machine"]
        self.assertEqual(machine["nodes"] * machine["ranks_per_node"], max(lasp2_throughput.RANKS))

    def test_a_launch_that_fails_is_reported_and_costs_its_own_records(self):
        for name in ALL:
            self.program(name, WRITES)
        self.program(simulations.COLLECTIVE, f'case "$*" in *direct_to_zigzag*) echo no such key >&2; exit 2;; esac; {WRITES}')
        done = self.simulate()
        launches = simulations.suite(self.folder, 4)
        failing = sum("direct_to_zigzag" in launch.arguments for launch in launches)
        self.assertEqual(done.returncode, simulations.FAILED_LAUNCHES)
        self.assertEqual(done.stdout.count("FAILED, status 2: no such key: --collectives direct_to_zigzag"), failing)
        self.assertEqual(len(self.records()), len(launches) - failing)

    def test_a_launch_that_leaves_no_records_has_failed(self):
        for name in ALL:
            self.program(name, "true")
        done = self.simulate()
        count = len(simulations.suite(self.folder, 4))
        self.assertEqual((done.returncode, done.stdout.count(" FAILED, ")), (simulations.FAILED_LAUNCHES, count), done.stderr)

    def test_no_launch_starts_after_an_interrupt(self):
        for name in ALL:
            self.program(name, f"echo started >>{self.folder}/started; sleep 2; {WRITES}")
        command = example.command("simulate", "--programs", self.folder, "--out", self.folder / "out")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
            running.stdout.readline()  # of the first launch that has ended
            os.killpg(running.pid, signal.SIGINT)
            _, errors = running.communicate(timeout=120)
        started = (self.folder / "started").read_text(encoding="utf-8").count("started")
        self.assertEqual((running.returncode, errors), (130, ""))
        self.assertLess(started, len(simulations.suite(self.folder, 4)))


if __name__ == "__main__":
    unittest.main()
