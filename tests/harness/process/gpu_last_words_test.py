# SPDX-License-Identifier: Apache-2.0
"""When a rank with a GPU is stopped or dies, the others say whom they waited for and end, and the GPUs are free at once:
python3 gpu_last_words_test.py PATH_OF_COLLECTIVE_BENCH

Exit code 77 where there are no two GPUs.
"""

import os
import signal
import subprocess
import sys
import time
import unittest

from launched_ranks import processes_of, wait_until_busy

BENCH = sys.argv.pop(1)
NOTHING_TO_TEST_ON = 77


def run_small(executor, ranks):
    return subprocess.run([BENCH, "--executor", executor, "--collectives", "all_scan", "--ranks", str(ranks), "-b", "64K",
                           "-n", "3", "-T", "30"], capture_output=True, text=True, timeout=60, check=False)


def most_ranks():
    """As many ranks of up to four as there are GPUs for, 0 where two are too many."""
    for ranks in (4, 2):
        tried = run_small("peer", ranks)
        if tried.returncode == 0:
            return ranks
        print(tried.stderr, end="", flush=True)
    return 0


class LastWords(unittest.TestCase):
    def launch(self, executor, limit, *arguments):
        """A run that is in its endless case: a line about the GPUs, before it, says that they are set up."""
        launched = subprocess.Popen([BENCH, "--executor", executor, "--collectives", "all_scan", "--ranks",
                                     str(RANKS), "-b", "16M", "-T", str(limit), *arguments],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launched.kill)
        self.assertTrue(any(line.startswith(f"# {executor}, ") for line in launched.stdout))
        wait_until_busy(processes_of(launched.pid).values(), seconds=1.5)  # it verifies first
        self.assertIsNone(launched.poll(), "it ended by itself")
        return launched

    def last_words(self, launched, rank, what, within):
        os.kill(processes_of(launched.pid)[rank], what)
        began = time.monotonic()
        _, errors = launched.communicate(timeout=60)
        self.assertLess(time.monotonic() - began, within, errors)
        self.assertEqual(launched.returncode, 5, errors)
        self.assertNotIn("died", errors.replace(f"rank {rank} died", ""))
        return errors

    def expect_usable(self, executor):
        ended = run_small(executor, RANKS)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn("skipped", ended.stdout)

    def test_a_rank_stopped_within_rounds_that_follow_one_another(self):
        launched = self.launch("peer", 60, "--cadence", "streaming", "-n", "500000")
        errors = self.last_words(launched, 0, signal.SIGSTOP, within=20)
        self.assertRegex(errors, r"failed: rank 1: .*timed out after \d+ ms waiting for rank 0: step \d+ \(\w+, all_scan\.cpp:\d+\), "
                                 r"packet \d+")
        self.assertNotIn("died", errors)
        self.expect_usable("peer")

    def test_a_rank_stopped_where_devices_wait_for_ever(self):
        launched = self.launch("nccl", 8, "-n", "1000000")
        errors = self.last_words(launched, 1, signal.SIGSTOP, within=20)
        self.assertRegex(errors, r"failed: (rank 1 is stopped|.*timed out after \d+ ms waiting for rank 1)")
        self.assertNotIn("died", errors)
        self.expect_usable("nccl")

    def test_a_killed_rank(self):
        for executor in ("peer", "nccl"):
            with self.subTest(executor):
                launched = self.launch(executor, 60, "-n", "1000000")
                errors = self.last_words(launched, 1, signal.SIGKILL, within=20)
                self.assertRegex(errors, rf"baton: all_scan/{executor}/.*: failed: rank 1 died")
                self.expect_usable(executor)


if __name__ == "__main__":
    RANKS = most_ranks()
    if RANKS == 0:
        sys.exit(NOTHING_TO_TEST_ON)
    unittest.main()
