# SPDX-License-Identifier: Apache-2.0
"""A host that vanishes, a link that is cut, a rank that is stopped elsewhere: python3 failures_test.py COLLECTIVE_BENCH"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import hosts

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness", "process"))
from launched_ranks import wait_until  # noqa: E402

BENCH = os.path.abspath(sys.argv.pop(1))
LIMIT = 15  # seconds of a case
NAMED_WITHIN = LIMIT + 10
SILENT = r"baton: host 3 of 4 {} has not been heard of for \d+ s in (ring_scan/mpi/ranks:|the first case)"


class AFailureElsewhere(unittest.TestCase):
    def setUp(self):
        self.hosts = hosts.Hosts(4)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.path = self.hosts.folder + "/records.jsonl"

    def start(self, ranks):
        """Returns when all ranks run, of a case that never ends. A file has the record of an earlier one."""
        command = [*self.hosts.mpirun(ranks, ranks // 4), BENCH, "--collectives", "ring_scan", "--heads", "1", "-J", self.path]
        done = self.hosts.run([*command, "-n", "2", "-w", "1"])
        self.assertEqual(done.returncode, 0, done.stderr)
        launched = self.hosts.start([*command, "-n", "1000000", "-T", str(LIMIT)])
        self.addCleanup(launched.kill)
        wait_until(lambda: len(self.ranks()) == ranks, 20)
        time.sleep(LIMIT / 3)  # connections are made, and signs of life were sent
        return launched

    def ranks(self):
        return {rank: process for host in range(4) for rank, process in self.hosts.ranks(host).items()}

    def end_of(self, launched):
        """What the run says until it ends, and the records of the cases before."""
        began = time.monotonic()
        try:
            _, errors = launched.communicate(timeout=NAMED_WITHIN + 20)
        except subprocess.TimeoutExpired:
            self.hosts.kill(0)
            self.fail("the run did not end:\n" + launched.communicate()[1])
        self.assertLess(time.monotonic() - began, NAMED_WITHIN, errors)
        self.assertNotEqual(launched.returncode, 0)
        with open(self.path) as file:
            records = [json.loads(line) for line in file]
        self.assertEqual(len(records), 1, "the case that failed has no record, the one before is whole")
        self.assertIn(f"the same command with --resume {self.path} goes on", errors)
        wait_until(lambda: not self.ranks(), 20)
        return errors

    def test_a_host_whose_processes_are_killed_is_named(self):
        launched = self.start(8)
        self.hosts.kill(2)
        self.assertRegex(self.end_of(launched), SILENT.format(r"\(ranks 4 5\)"))

    def test_a_host_whose_link_is_cut_is_named(self):
        launched = self.start(8)
        self.hosts.cut(2)
        self.assertRegex(self.end_of(launched), SILENT.format(r"\(ranks 4 5\)"))

    def test_a_rank_that_is_stopped_on_another_host_is_named(self):
        launched = self.start(8)
        os.kill(self.ranks()[4], signal.SIGSTOP)  # the first of its host: the other one has to look at it
        self.assertRegex(self.end_of(launched), r"baton: rank 4 is stopped in (ring_scan/mpi/ranks:8/|the first case)")

    def test_a_rank_that_is_alone_on_its_host_and_stops_is_named(self):
        launched = self.start(4)
        os.kill(self.ranks()[2], signal.SIGSTOP)
        self.assertRegex(self.end_of(launched), SILENT.format(r"\(ranks 2\)"))


if __name__ == "__main__":
    hosts.skip_if(hosts.missing())
    unittest.main()
