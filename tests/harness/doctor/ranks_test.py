# SPDX-License-Identifier: Apache-2.0
"""The doctor on real processes: DOCTOR DELAYED_DOCTOR

Other load on the machine may add findings, so the tests ask for those that they provoke.
"""

import contextlib
import json
import os
import subprocess
import sys
import unittest

DELAYED = sys.argv.pop(2)
DOCTOR = sys.argv.pop(1)
CORES = sorted(os.sched_getaffinity(0))


def mpirun(processes, *arguments):
    return ["mpirun", "-n", str(processes), "--oversubscribe", "--allow-run-as-root", *arguments]


def run(*arguments, launcher=(), doctor=DOCTOR):
    return subprocess.run([*launcher, doctor, *arguments], capture_output=True, text=True, timeout=1200)


def examined(*arguments, repeats=5, **how):
    """The exit code and what the doctor says as JSON."""
    ended = run("--repeats", str(repeats), "--json", *arguments, **how)
    return ended.returncode, json.loads(ended.stdout)


def about(found, topic):
    return [one for one in found["findings"] if one["about"] == topic]


class Refusals(unittest.TestCase):
    @unittest.skipIf(len(CORES) >= 64, "this host may start all that the flag takes")
    def test_more_ranks_than_this_host_may_start(self):
        ended = run("--ranks", "1024")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr.count("\n")), (2, "", 1), ended)
        self.assertIn("--ranks: 1024 processes on this host", ended.stderr)


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
        self.assertTrue(set(loops) & {one["number"] for one in found["readings"]["hosts"][0]["others"]})

    def test_a_pair_with_delayed_messages_is_named(self):
        code, found = examined("--ranks", "3", "--executor", "delayed_pair", doctor=DELAYED)
        self.assertEqual(code, 1)
        self.assertIn([0, 2], [one["ranks"] for one in about(found, "link")], found["findings"])
        self.assertNotIn([0], [one["ranks"] for one in about(found, "link")])

    @unittest.skipIf(len(CORES) < 2, "needs two cores")
    def test_an_unbound_run_is_named(self):
        code, found = examined(launcher=mpirun(2, "--bind-to", "none"))
        self.assertEqual(code, 1)
        named = about(found, "binding")
        self.assertEqual([one["ranks"] for one in named], [[0, 1]])
        self.assertIn("not bound", named[0]["what"])

    @unittest.skipIf(len(CORES) > 16, "needs a rank a core")
    def test_more_ranks_than_cores_are_named(self):
        ranks = len(CORES) + 1
        code, found = examined("--ranks", str(ranks), repeats=3)
        self.assertEqual(code, 1)
        self.assertIn(f"{ranks} ranks share", about(found, "binding")[0]["what"])

    def test_ranks_that_it_starts_are_bound(self):
        _, found = examined(repeats=3)
        self.assertEqual(about(found, "binding"), [])

    def test_the_text_begins_with_the_verdict(self):
        ended = run("--repeats", "3")
        self.assertIn(ended.returncode, (0, 1), ended.stderr)
        verdict = "This machine is fit" if ended.returncode == 0 else "This machine is NOT fit"
        self.assertTrue(ended.stdout.startswith(verdict), ended.stdout)
        self.assertLessEqual(max(map(len, ended.stdout.splitlines())), 100)
        self.assertIn("Links of mpi", ended.stdout)

    def test_ranks_that_cannot_be_examined_are_a_finding(self):
        environment = {**os.environ, "PATH": "/nonexistent"}
        ended = subprocess.run([DOCTOR, "--json"], capture_output=True, text=True, timeout=600, env=environment)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("mpiexec", json.loads(ended.stdout)["findings"][0]["what"])

    def test_wrong_words_are_usage_errors(self):
        for words in (["--ranks", "x"], ["--repeats", "1"], ["--executor", "nothing"], ["--jsn"]):
            ended = run(*words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)


if __name__ == "__main__":
    unittest.main()
