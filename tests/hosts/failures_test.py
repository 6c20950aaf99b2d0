# SPDX-License-Identifier: Apache-2.0
"""A host that vanishes, a link that is cut, a rank that is stopped elsewhere: python3 failures_test.py COLLECTIVE_BENCH"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import hosts
from harness.process.launched_ranks import wait_until

BENCH = os.path.abspath(sys.argv.pop(1))
LIMIT = 15  # seconds of a case
ENDED_WITHIN = LIMIT + 105  # it takes LIMIT + 10 on a machine that is not busy
IN_A_PART = r"in (?:ring_scan/mpi/ranks:|start-up)"
LOST = rf"baton: host (\d) of 4 (\(.*\)) has (no rank left|not been heard of for \d+ s) {IN_A_PART}"


class AFailureElsewhere(unittest.TestCase):
    def setUp(self):
        self.hosts = hosts.Hosts(4)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.path = self.hosts.folder + "/records.jsonl"

    def start(self, ranks):
        """Returns when all ranks are in a case that never ends. A file has the record of an earlier one."""
        case = [BENCH, "--collectives", "ring_scan", "--heads", "1", "-J", self.path]
        done = self.hosts.run([*case, "--executor", "local", "--ranks", str(ranks), "-n", "2", "-w", "1"])
        self.assertEqual(done.returncode, 0, done.stderr)
        launched = self.hosts.start([*self.hosts.mpirun(ranks, ranks // 4), *case, "-n", "1000000", "-T", str(LIMIT)])
        self.addCleanup(launched.kill)
        self.assertTrue(any(line.startswith("# baton ") for line in launched.stdout))
        time.sleep(LIMIT / 3)  # signs of life were sent
        self.assertEqual(len(self.ranks()), ranks)
        return launched

    def ranks(self):
        return {rank: process for host in range(4) for rank, process in self.hosts.ranks(host).items()}

    def end_of(self, launched):
        """What the run says until it ends, and the records of the cases before."""
        try:
            _, errors = launched.communicate(timeout=ENDED_WITHIN)
        except subprocess.TimeoutExpired:
            left = self.ranks()
            self.hosts.kill(0)
            self.fail(f"the run did not end, with {left or 'no'} ranks:\n" + launched.communicate()[1])
        self.assertNotEqual(launched.returncode, 0)
        with open(self.path) as file:
            records = [json.loads(line) for line in file]
        self.assertEqual(len(records), 1, "the case that failed has no record, the one before is whole")
        self.assertIn(f"the same command with --resume {self.path} goes on", errors)
        wait_until(lambda: not self.ranks(), 20)
        return errors

    def assert_lost(self, launched, host, ranks, words):
        """Demands that the run names this host, counted from 1, with its ranks, as the only one that is lost."""
        errors = self.end_of(launched)
        found = re.findall(LOST, errors)
        self.assertEqual([lost[:2] for lost in found], [(host, ranks)], errors)
        self.assertRegex(found[0][2], words)

    def test_a_host_whose_processes_are_killed_is_named(self):
        launched = self.start(8)
        self.hosts.kill(2)
        self.assert_lost(launched, "3", "(ranks 4 5)", "no rank left")

    def test_a_killed_host_is_named_by_the_one_that_the_launcher_ends_first(self):
        """Open MPI kills the ranks beside it 1 s after they got SIGTERM, and those of other hosts 1 s later."""
        launched = self.start(8)
        self.hosts.kill(3)
        self.assert_lost(launched, "4", "(ranks 6 7)", "no rank left")

    def test_a_host_that_is_killed_while_its_listener_sleeps_is_named(self):
        """The host of the listener is silent meanwhile, and is not named."""
        launched = self.start(8)
        listener = self.ranks()[6]
        os.kill(listener, signal.SIGSTOP)
        self.hosts.kill(2)
        time.sleep(1.2)
        os.kill(listener, signal.SIGCONT)
        self.assert_lost(launched, "3", "(ranks 4 5)", "no rank left")

    def test_a_host_whose_link_is_cut_is_named(self):
        launched = self.start(8)
        self.hosts.cut(2)
        self.assert_lost(launched, "3", "(ranks 4 5)", "not been heard of")

    def test_a_host_of_which_one_rank_is_killed_is_not_named(self):
        launched = self.start(8)
        os.kill(self.ranks()[4], signal.SIGKILL)  # the first of its host
        errors = self.end_of(launched)
        self.assertEqual(re.findall(LOST, errors), [], errors)

    def test_a_rank_that_is_stopped_on_another_host_is_named(self):
        launched = self.start(8)
        os.kill(self.ranks()[4], signal.SIGSTOP)  # the first of its host: the other one has to look at it
        self.assertRegex(self.end_of(launched), r"baton: rank 4 is stopped in (ring_scan/mpi/ranks:8/|start-up)")

    def test_a_rank_that_is_alone_on_its_host_and_stops_is_named(self):
        launched = self.start(4)
        os.kill(self.ranks()[2], signal.SIGSTOP)
        self.assert_lost(launched, "3", "(ranks 2)", "not been heard of")


if __name__ == "__main__":
    hosts.skip_if(hosts.missing())
    unittest.main()
