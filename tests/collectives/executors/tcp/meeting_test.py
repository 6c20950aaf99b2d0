# SPDX-License-Identifier: Apache-2.0
"""Ranks that meet late, paused, crowded or among strangers: python3 meeting_test.py PATH_OF_COLLECTIVE_BENCH

Each run must complete. Its deadline only ends one that hangs.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "harness" / "process"))
from launched_ranks import wait_until
from torchrun_like import free_port, start

BENCH = sys.argv.pop(1)
SMALL = ["--heads", "1", "--collectives", "ring_scan", "-n", "5"]
TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
PORTS = 16  # at which rank 0 may listen


class Run:
    """Ranks of one run, which are started one by one or together."""

    def __init__(self, size, **variables):
        self.port, self.size, self.processes = free_port(), size, {}
        self.variables = {"BATON_PORT": str(self.port), "MASTER_PORT": "7", **variables}

    def start(self, *ranks, **variables):
        self.processes |= start(self.size, [BENCH, *SMALL], ranks=ranks, extra={**self.variables, **variables}, **TEXT)

    def start_rank_0(self):
        """Starts rank 0 and waits until it listens; the port at which it does."""
        self.start(0)
        wait_until(lambda: self.listening() is not None, 60)
        return self.listening()

    def listening(self):
        for port in range(self.port, self.port + PORTS):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return port
        return None

    def ends(self, seconds=120):
        """The exit codes and errors of all ranks. Kills those that do not end."""
        killer = threading.Timer(seconds, lambda: [process.kill() for process in self.processes.values()])
        killer.start()
        try:
            errors = {rank: process.communicate()[1] for rank, process in self.processes.items()}
        finally:
            killer.cancel()
        return {rank: process.returncode for rank, process in self.processes.items()}, errors


class Meeting(unittest.TestCase):
    def assert_completes(self, run):
        codes, errors = run.ends()
        self.assertEqual(codes, dict.fromkeys(range(run.size), 0), errors)

    def connect(self, port, count):
        """Connections that say nothing until the test ends."""
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", port), timeout=60)
            self.addCleanup(one.close)

    def test_rank_0_is_paused_while_ranks_meet(self):
        run = Run(4)
        run.start_rank_0()
        os.kill(run.processes[0].pid, signal.SIGSTOP)
        run.start(1, 2, 3)
        time.sleep(8)
        os.kill(run.processes[0].pid, signal.SIGCONT)
        self.assert_completes(run)

    def test_a_rank_is_paused_until_its_seat_is_free_again(self):
        run = Run(3)
        run.start_rank_0()
        run.start(1)
        time.sleep(1)
        os.kill(run.processes[1].pid, signal.SIGSTOP)
        time.sleep(8)
        os.kill(run.processes[1].pid, signal.SIGCONT)
        run.start(2)
        self.assert_completes(run)

    def test_silent_connections_before_and_while_ranks_meet(self):
        run = Run(4)
        port = run.start_rank_0()
        self.connect(port, 200)
        run.start(1, 2)
        self.connect(port, 200)
        run.start(3)
        self.assert_completes(run)

    def test_silent_programs_at_the_ports_before_that_of_rank_0(self):
        run = Run(2)
        for port in range(run.port, run.port + 3):
            taken = socket.socket()
            self.addCleanup(taken.close)
            taken.bind(("", port))
            taken.listen()
        run.start(1, 0)
        self.assert_completes(run)

    def test_ranks_that_come_far_apart(self):
        """Later in all than the limit, which is for the next one to come."""
        run = Run(4, BATON_MEETING_SECONDS="8")
        for rank in range(4):
            run.start(rank)
            time.sleep(5 if rank < 3 else 0)
        self.assert_completes(run)

    def test_many_ranks_at_once(self):
        run = Run(64)
        run.start(*range(64))
        self.assert_completes(run)

    def test_a_rank_that_died_before_the_others_came_is_started_again(self):
        run = Run(3)
        run.start_rank_0()
        run.start(1)
        time.sleep(1)
        run.processes[1].kill()
        run.processes[1].communicate()
        run.start(1, 2)
        self.assert_completes(run)


class Secrets(unittest.TestCase):
    def test_ranks_with_one_secret_meet(self):
        run = Run(3, BATON_SECRET="words that nobody knows")
        run.start(0, 1, 2)
        codes, errors = run.ends()
        self.assertEqual(set(codes.values()), {0}, errors)

    def test_a_rank_with_another_secret_or_none_is_not_let_in(self):
        for other in ("words of others", ""):
            run = Run(3, BATON_SECRET="words that nobody knows", BATON_MEETING_SECONDS="10")
            run.start(0, 1)
            run.start(2, BATON_SECRET=other)
            codes, errors = run.ends()
            self.assertEqual(set(codes.values()), {1}, errors)
            self.assertRegex(errors[0], r"^baton: rank 2 of 3 did not come to [^\n]*\n$")
            self.assertRegex(errors[2], r"^baton: rank 2 was not let in by rank 0 at [^\n]* another secret: [^\n]*\n$")

    def test_a_host_without_libcrypto_says_so_and_needs_none_without_a_secret(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"):
                pathlib.Path(folder, name).write_text("no library")
            for secret, code, said in (("words", 1, r"^baton: this run has a secret, and this host no libcrypto [^\n]*\n$"), ("", 0, "^$")):
                run = Run(2, BATON_SECRET=secret, LD_LIBRARY_PATH=folder)
                run.start(0, 1)
                codes, errors = run.ends()
                self.assertEqual(set(codes.values()), {code}, errors)
                for text in errors.values():
                    self.assertRegex(text, said)

    def test_rank_0_with_another_secret_is_not_believed(self):
        run = Run(2, BATON_SECRET="words that nobody knows", BATON_MEETING_SECONDS="10")
        run.start(0, BATON_SECRET="")
        run.start(1)
        codes, errors = run.ends()
        self.assertEqual(set(codes.values()), {1}, errors)
        self.assertIn("another secret", errors[1])


if __name__ == "__main__":
    unittest.main()
