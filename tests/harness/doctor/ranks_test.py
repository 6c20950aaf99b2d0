# SPDX-License-Identifier: Apache-2.0
"""`baton doctor` on real processes: FOLDER DELAYED_FOLDER, each with a doctor_readings

Other load on the machine may add findings, so the tests ask for those that they provoke.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

DELAYED = sys.argv.pop(2)
PROGRAMS = sys.argv.pop(1)
BATON = [sys.executable, pathlib.Path(__file__).resolve().parents[3] / "plots/baton", "doctor"]
CORES = sorted(os.sched_getaffinity(0))


def mpirun(processes, *arguments):
    return ["mpirun", "-n", str(processes), "--oversubscribe", "--allow-run-as-root", *arguments]


def run(*arguments, launcher=(), programs=PROGRAMS, **environment):
    return subprocess.run([*launcher, *BATON, "--programs", programs, *arguments], capture_output=True, text=True, timeout=1200,
                          env={**os.environ, **environment}, check=False)


def examined(*arguments, repeats=5, **how):
    """The exit code and what the doctor says as JSON."""
    ended = run("--repeats", str(repeats), "--json", *arguments, **how)
    return ended.returncode, json.loads(ended.stdout)


def about(found, topic):
    return [one for one in found["findings"] if one["about"] == topic]


@contextlib.contextmanager
def busy_loops(core, count):
    """Processes that keep a core busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        for loop in loops:
            os.sched_setaffinity(loop.pid, {core})
        yield [loop.pid for loop in loops]
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Doctor(unittest.TestCase):
    maxDiff = None

    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_a_rank_with_a_busy_loop_beside_it_is_named(self):
        _, quiet = examined("--ranks", "2", repeats=3)
        self.assertEqual(about(quiet, "binding"), [])
        core = quiet["readings"]["ranks"][1]["cores"][0]
        with busy_loops(core, 3) as loops:
            code, found = examined("--ranks", "2")
        self.assertEqual(code, 1)
        self.assertFalse(found["fit"])
        self.assertEqual(found["readings"]["ranks"][1]["cores"][0], core)
        named = [one for one in about(found, "rank") if 1 in one["ranks"]]
        self.assertEqual(len(named), 1, found["findings"])
        self.assertIn(f"core {core}", named[0]["what"])
        load = [one for one in about(found, "load") if 1 in one["ranks"]]
        self.assertEqual(len(load), 1, found["findings"])
        if not about(quiet, "load"):  # or others may be as busy as the loops
            self.assertTrue(set(loops) & {one["number"] for one in found["readings"]["hosts"][0]["others"]})

    def test_a_pair_with_delayed_messages_is_named(self):
        code, found = examined("--ranks", "3", "--executor", "delayed_pair", programs=DELAYED)
        self.assertEqual(code, 1)
        self.assertIn([0, 2], [one["ranks"] for one in about(found, "link")], found["findings"])
        self.assertNotIn([0], [one["ranks"] for one in about(found, "link")])

    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_the_ranks_of_another_launcher_are_examined_once(self):
        code, found = examined(launcher=mpirun(2, "--bind-to", "none"))
        self.assertEqual(code, 1)
        named = about(found, "binding")
        self.assertEqual([one["ranks"] for one in named], [[0, 1]])
        self.assertIn("not bound", named[0]["what"])

    def test_ranks_that_cannot_be_examined_are_a_finding(self):
        ended = run("--json", PATH="/nonexistent")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("mpiexec", json.loads(ended.stdout)["findings"][0]["what"])

    def test_wrong_words_are_usage_errors(self):
        for words in (["--ranks", "x"], ["--repeats", "1"], ["--executor", "nothing"], ["--jsn"], ["--ranks", "1025"]):
            ended = run(*words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)


if __name__ == "__main__":
    unittest.main()
