# SPDX-License-Identifier: Apache-2.0
"""When a rank dies or hangs, the others end and say so: python3 watchdog_test.py PATH_OF_COLLECTIVE_BENCH"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from launched_ranks import processes_of, wait_until_busy

BENCH = sys.argv.pop(1)
ENDLESS = ["--collectives", "ring_scan", "--ranks", "3", "--heads", "1", "-n", "1000000"]


class LastWords(unittest.TestCase):
    def start(self, *arguments):
        return subprocess.Popen([BENCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_rounds(self, launched):
        """Waits until the bench has described its ranks and all of them use the processor: they are in the case then."""
        self.assertTrue(any(line.startswith("# mpi, ") for line in launched.stdout))
        wait_until_busy(processes_of(launched.pid).values(), seconds=0.3)

    def test_a_killed_rank_is_named_with_its_case(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            subprocess.run([BENCH, "--executor", "local", "--heads", "1", "-n", "1", "-J", path], check=True,
                           capture_output=True)
            launched = self.start(*ENDLESS, "-T", "60", "-J", path)
            self.wait_for_rounds(launched)
            os.kill(processes_of(launched.pid)[1], signal.SIGKILL)
            began = time.monotonic()
            _, errors = launched.communicate(timeout=60)
            self.assertLess(time.monotonic() - began, 30)
            self.assertNotEqual(launched.returncode, 0)
            self.assertIn("baton: rank 1 died in ring_scan/mpi/ranks:3/", errors)
            with open(path) as file:
                for line in file:
                    json.loads(line)  # what was measured before is whole

    def test_a_stopped_rank_is_named_when_time_is_up(self):
        launched = self.start(*ENDLESS, "-T", "6")
        self.wait_for_rounds(launched)
        os.kill(processes_of(launched.pid)[1], signal.SIGSTOP)
        _, errors = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, 0)
        self.assertIn("baton: rank 1 is stopped in ring_scan/mpi/ranks:3/", errors)
        self.assertIn("exceeded the time limit in ring_scan/mpi/ranks:3/", errors)
        self.assertNotIn("died", errors)

    def test_an_interrupted_process_says_what_it_keeps(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            launched = self.start("--executor", "local", "--collectives", "ring_scan,all_scan", "-n", "1000", "-J", path)
            self.assertTrue(any(line.startswith("ring_scan") for line in launched.stdout))
            wait_until_busy([launched.pid], seconds=0.3)  # the next case has begun
            launched.send_signal(signal.SIGINT)
            _, errors = launched.communicate(timeout=60)
            self.assertEqual(launched.returncode, 130)
            self.assertRegex(errors, rf"baton: interrupted in all_scan/local/.*; the rows above stand, .* in {path}\n$")
            with open(path) as file:
                self.assertEqual(json.loads(file.read())["name"], "ring_scan")

    def test_a_case_that_takes_too_long_is_ended(self):
        launched = self.start(*ENDLESS, "-T", "2")
        _, errors = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, 0)
        self.assertIn("exceeded the time limit in ring_scan/mpi/ranks:3/", errors)
        self.assertNotIn("died", errors)  # of the ranks that end first


if __name__ == "__main__":
    unittest.main()
