# SPDX-License-Identifier: Apache-2.0
"""A case that ends its launch costs no other case: python3 watchdog_test.py PATH_OF_COLLECTIVE_BENCH"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launched_ranks import parent_of, processes_of, wait_until, wait_until_busy

BENCH = sys.argv.pop(1)
SMALL = ["--heads", "1", "--ranks", "3"]
ENDLESS = ["--collectives", "ring_scan", *SMALL, "-n", "1000000"]
CASE = "ring_scan/mpi/ranks:3/"


class LastWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name + "/records.jsonl"

    def start(self, *arguments, **environment):
        return subprocess.Popen([BENCH, *arguments, "-J", self.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={**os.environ, **environment})

    def start_endless(self, *arguments):
        """Returns when all ranks use the processor: they are in the case then."""
        launched = self.start(*ENDLESS, *arguments)
        self.addCleanup(launched.kill)
        self.assertTrue(any(line.startswith("# mpi, ") for line in launched.stdout))
        wait_until_busy(processes_of(launched.pid).values(), seconds=0.3)
        return launched

    def end_of(self, launched, code, timeout=300):
        output, errors = launched.communicate(timeout=timeout)
        self.assertEqual(launched.returncode, code, errors)
        with open(self.path) as file:
            return output, errors, [json.loads(line) for line in file]

    def test_a_killed_rank_is_named_with_its_case(self):
        launched = self.start_endless("-T", "60")
        os.kill(processes_of(launched.pid)[1], signal.SIGKILL)
        began = time.monotonic()
        output, errors, records = self.end_of(launched, 5)
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("failed: rank 1 died of signal 9 (Killed)", output)
        self.assertRegex(errors, f"(?m)^baton: 1 of 1 cases gave no time\nbaton: {CASE}.*: failed: rank 1 died")
        self.assertNotIn("mpiexec", errors)
        self.assertEqual(records[0]["failed_rank"], 1)

    def test_a_stopped_rank_is_named_before_the_time_is_up(self):
        launched = self.start_endless("-T", "300")
        os.kill(processes_of(launched.pid)[1], signal.SIGSTOP)
        began = time.monotonic()
        output, _, records = self.end_of(launched, 5)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("failed: rank 1 is stopped; rank", output)  # and where another one waits
        self.assertRegex(records[0]["failed"], r"rank \d was (at step \d|between two rounds)")
        self.assertEqual((records[0]["failed_rank"], records[0]["case"].split("/")[0]), (1, "ring_scan"))

    def test_a_rank_that_is_stopped_as_it_starts_ends_its_launch(self):
        launched = self.start("--collectives", "ring_scan", "--heads", "1", "--ranks", "2", "-T", "20",
                              BATON_MEETING_SECONDS="20")
        self.addCleanup(launched.kill)
        wait_until(lambda: 1 in processes_of(launched.pid), 60)
        os.kill(processes_of(launched.pid)[1], signal.SIGSTOP)
        output, errors = launched.communicate(timeout=900)
        self.assertIn(launched.returncode, (0, 5), errors)  # on a busy machine the case may take longer than it may
        # On a busy machine the rank may be stopped when it has started, and then in its case.
        self.assertIn("rank 1 is stopped", errors + output)
        if "ended outside" in errors:
            self.assertRegex(errors, r"^baton: launch 1 ended outside .*: its processes did not all start for \d+ s; rank 1 is "
                                     r"stopped; it is started again\n")
        self.assertGreater(os.path.getsize(self.path), 0)

    def test_all_ranks_that_stop_in_a_case_are_ended(self):
        launched = self.start(*ENDLESS, "-T", "10")
        self.addCleanup(launched.kill)
        self.assertTrue(any(line.startswith("# baton ") for line in launched.stdout))
        for process in processes_of(launched.pid).values():
            os.kill(process, signal.SIGSTOP)
        output, _, records = self.end_of(launched, 5, timeout=600)  # 10 s, 20 s of grace and 10 s until SIGKILL
        self.assertIn("failed: its processes said nothing for", output)
        self.assertEqual(records[0]["failed_rank"], 0)

    def test_a_case_that_takes_too_long_is_ended(self):
        output, errors, records = self.end_of(self.start(*ENDLESS, "-T", "2"), 5)
        self.assertIn("failed: rank 0 exceeded the time limit", output)
        self.assertNotIn("died", errors)  # of the ranks that end first
        self.assertLess(records[0]["failed_after_seconds"], 12)

    def test_the_other_cases_run(self):
        launched = self.start("--collectives", "all_scan,ring_scan,two_shot", "--ranks", "3", "--heads", "16", "-n", "1000",
                              "--launches", "2")
        self.addCleanup(launched.kill)
        wait_until(lambda: os.path.exists(self.path) and os.path.getsize(self.path) > 0, 60)
        time.sleep(0.4)  # the next case has begun
        os.kill(processes_of(launched.pid)[2], signal.SIGKILL)
        output, errors, records = self.end_of(launched, 5)
        failed = {record["name"] for record in records if "failed" in record}
        self.assertEqual(len(failed), 1, errors)
        rows = [line for line in output.splitlines() if line.lstrip("!").startswith(("all_scan", "ring_scan", "two_shot"))]
        self.assertEqual(["failed: rank 2 died" in line for line in rows], [False, False, True], output)
        timed = [(record["launch"], record["name"]) for record in records if "seconds" in record]
        others = {"all_scan", "ring_scan", "two_shot"} - failed
        self.assertEqual(set(timed) & {(2, name) for name in others}, {(2, name) for name in others})
        self.assertEqual({record["run"] for record in records}, {records[0]["run"]})

    def test_the_launcher_dies(self):
        launched = self.start_endless()
        ranks = processes_of(launched.pid)
        os.kill(parent_of(ranks[0]), signal.SIGKILL)
        output, _, _ = self.end_of(launched, 5)
        self.assertIn("failed: its launch ended with exit code 137", output)
        for process in ranks.values():
            self.assertFalse(os.path.exists(f"/proc/{process}"))

    def test_ctrl_c_keeps_what_there_is_and_resume_goes_on(self):
        arguments = ["--executor", "local", "--collectives", "ring_scan,all_scan", *SMALL, "-n", "20000"]
        launched = self.start(*arguments)
        wait_until(lambda: os.path.getsize(self.path) > 0 if os.path.exists(self.path) else False, 30)
        time.sleep(0.1)
        launched.send_signal(signal.SIGINT)
        _, errors, records = self.end_of(launched, 130)
        self.assertRegex(errors, r"(?m)^baton: interrupted in all_scan/local/.*\nbaton: 1 of 2 rows were measured, their records are "
                                 rf"in {self.path}; the same command with --resume {self.path} goes on\n$")
        self.assertEqual([record["name"] for record in records], ["ring_scan"])
        resumed = subprocess.run([BENCH, *arguments, "--resume", self.path], check=True, capture_output=True, text=True)
        for name in ("ring_scan", "all_scan"):  # what was measured before stands beside the rest
            self.assertRegex(resumed.stdout, rf"(?m)^{name} .*\[")
        with open(self.path) as file:
            records = [json.loads(line) for line in file]
        self.assertEqual([record["name"] for record in records], ["ring_scan", "all_scan"])
        self.assertEqual(records[0]["run"], records[1]["run"])

    def test_nothing_of_a_launch_is_left(self):
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1):
            with self.subTest(number):
                self.nothing_is_left_after(number)

    def nothing_is_left_after(self, number):
        with tempfile.TemporaryDirectory() as folder:
            launched = subprocess.Popen([BENCH, *ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "TMPDIR": folder})
            self.assertTrue(any(line.startswith("# mpi, ") for line in launched.stdout))
            self.assertNotEqual(os.listdir(folder), [])
            rank = processes_of(launched.pid)[0]
            with open(f"/proc/{rank}/environ", encoding="utf-8") as environment:
                shared, = re.findall(r"OMPI_MCA_btl_vader_backing_directory=([^\0]+)", environment.read())
            self.assertTrue(os.path.isdir(shared))
            launched.send_signal(number)
            launched.communicate(timeout=300)
            self.assertEqual(launched.returncode, 130)
            wait_until(lambda: os.listdir(folder) == [], 5)
            self.assertFalse(os.path.exists(shared))


class UnderTheUsersLauncher(unittest.TestCase):
    def test_a_failure_says_how_to_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            command = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "3", BENCH, "--collectives",
                       "two_shot,ring_scan", *SMALL, "-n", "1000000", "-T", "1", "-J", path]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(f"the same command with --resume {path} goes on", ended.stderr)


if __name__ == "__main__":
    unittest.main()
