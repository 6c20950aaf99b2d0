# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine are what they say, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
import unittest

import hosts

FOLDER = os.path.dirname(os.path.abspath(__file__))
HOLD = "import hosts, sys, time\nwith hosts.Hosts(2) as made:\n print(made.folder, *made._inits, flush=True)\n time.sleep({0})"


def interfaces():
    with open("/proc/net/dev") as file:
        return {line.split(":")[0].strip() for line in file if ":" in line}


def is_gone(process):
    return not os.path.exists(f"/proc/{process}")


class Hosts(unittest.TestCase):
    def test_each_has_a_name_and_a_card_and_reaches_the_others(self):
        with hosts.Hosts(3) as made:
            for host in range(3):
                self.assertEqual(made.run(["hostname"], host).stdout, f"host{host}\n")
            echoes = made.run(made.mpirun(3, 1, "hostname"), timeout=60)
            self.assertEqual(sorted(echoes.stdout.split()), ["host0", "host1", "host2"], echoes.stderr)

    def test_each_may_have_a_clock_of_its_own(self):
        with hosts.Hosts(2, clock_steps=(0, 1000)) as made:
            clock = [sys.executable, "-c", "import time; print(time.monotonic())"]
            here, there = (float(made.run(clock, host).stdout) for host in (0, 1))
            self.assertAlmostEqual(there - here, 1000, delta=30)

    def test_a_cut_link_carries_nothing(self):
        with hosts.Hosts(2) as made:
            made.cut(1)
            reach = [sys.executable, "-c", "import socket; socket.create_connection(('host1', 1), timeout=1)"]
            errors = made.run(reach).stderr
            self.assertNotIn("refused", errors)
            self.assertIn("Error", errors)

    def holder(self, seconds):
        process = subprocess.Popen([sys.executable, "-c", HOLD.format(seconds)], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
        folder, *inits = process.stdout.readline().split()
        self.addCleanup(process.stdout.close)
        return process, folder, inits

    def test_nothing_is_left_at_the_end(self):
        before = interfaces()
        process, folder, inits = self.holder(0)
        self.assertEqual(process.wait(), 0)
        self.assertFalse(os.path.exists(folder))
        self.assertTrue(all(map(is_gone, inits)))
        self.assertEqual(interfaces(), before)

    def test_nothing_but_a_folder_of_texts_is_left_of_a_maker_that_is_killed(self):
        before = interfaces()
        process, folder, inits = self.holder(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 10
        while not all(map(is_gone, inits)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(all(map(is_gone, inits)))
        self.assertEqual(interfaces(), before)
        subprocess.run(["rm", "-r", folder], check=True)


if __name__ == "__main__":
    hosts.skip_if(hosts.missing())
    unittest.main()
