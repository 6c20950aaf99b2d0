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

BENCH = sys.argv.pop(1)
ENDLESS = ["--collectives", "ring_scan", "--ranks", "3", "--heads", "1", "-n", "1000000"]


def processes_of(parent):
    """The process ids of the ranks that `parent`, which has become mpiexec, started; rank by rank."""
    ranks = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
            with open(f"/proc/{entry}/stat") as file:
                ours = int(file.read().rsplit(")", 1)[1].split()[1]) == parent
        except OSError:
            continue
        if ours and b"OMPI_COMM_WORLD_RANK" in variables:
            ranks[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(entry)
    return ranks


class LastWords(unittest.TestCase):
    def start(self, *arguments):
        return subprocess.Popen([BENCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_rounds(self, launched):
        """Until the first lines of the table are out: the ranks are in the case then, or about to be."""
        for line in launched.stdout:
            if line.startswith("collective"):
                break
        time.sleep(2)

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

    def test_a_case_that_takes_too_long_is_ended(self):
        launched = self.start(*ENDLESS, "-T", "2")
        _, errors = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, 0)
        self.assertIn("exceeded the time limit in ring_scan/mpi/ranks:3/", errors)


if __name__ == "__main__":
    unittest.main()
