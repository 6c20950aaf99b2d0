# SPDX-License-Identifier: Apache-2.0
"""Benches whose ranks torchrun or srun started, without MPI: python3 without_mpi_test.py PATH_OF_COLLECTIVE_BENCH"""

import json
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

from launched_ranks import wait_until_busy
from plots.example import command
from torchrun_like import free_port, slurm_variables, start, torch_variables

BENCH = sys.argv.pop(1)
SMALL = ["--heads", "1", "--collectives", "ring_scan,all_scan", "-n", "20"]
ENDLESS = ["--heads", "1", "--collectives", "ring_scan", "-n", "1000000", "-T", "300"]
TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def ended(processes, seconds=60):
    """(exit code, output, errors) of each process, by rank; kills what has not ended in time."""
    killer = threading.Timer(seconds, lambda: [process.kill() for process in processes.values()])
    killer.start()
    try:
        return {rank: (*process.communicate(), process.returncode) for rank, process in processes.items()}
    finally:
        killer.cancel()


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def records(self, name, *arguments, **how):
        path = self.folder / name
        ends = ended(start(3, [BENCH, *SMALL, *arguments, "-J", str(path)], **how, **TEXT))
        self.assertEqual({code for _, _, code in ends.values()}, {0}, ends)
        self.assertEqual([bool(output) for output, _, _ in ends.values()], [True, False, False], "rank 0 alone prints")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_the_default_executor_is_tcp(self):
        records = self.records("a.jsonl")
        self.assertEqual({(record["executor"], record["ranks"], record.get("skipped")) for record in records}, {("tcp", 3, None)})

    def test_variables_of_slurm_serve_as_well(self):
        self.assertEqual({record["ranks"] for record in self.records("a.jsonl", variables=slurm_variables)}, {3})

    def test_rows_of_mpirun_and_of_torchrun_can_be_compared(self):
        torchrun = {"TORCHELASTIC_RUN_ID": "none", "OMP_NUM_THREADS": "1"}
        self.records("torchrun.jsonl", "--executor", "tcp", extra=torchrun)
        subprocess.run(["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "3", BENCH, *SMALL, "--executor", "tcp", "-J",
                        str(self.folder / "mpirun.jsonl")], check=True, capture_output=True, timeout=600)
        compared = subprocess.run(command("compare", self.folder / "mpirun.jsonl", self.folder / "torchrun.jsonl"), capture_output=True, text=True, timeout=300)
        self.assertNotIn("no verdict", compared.stdout + compared.stderr)
        for name in ("ring_scan", "all_scan"):
            self.assertIn(name, compared.stdout)

    def test_executor_mpi_is_refused_in_one_line(self):
        ends = ended(start(2, [BENCH, *SMALL, "--executor", "mpi"], **TEXT))
        self.assertEqual({code for _, _, code in ends.values()}, {2})
        self.assertEqual(ends[0][1], "baton: executor mpi cannot run: these processes were started without MPI; start them with "
                                     "mpirun, or take --executor tcp\n")
        self.assertEqual(ends[1][1], "")


class Meeting(unittest.TestCase):
    WAIT = {"BATON_MEETING_SECONDS": "2"}

    def errors(self, size, ranks, seconds=20, **how):
        ends = ended(start(size, [BENCH, *SMALL], ranks=ranks, extra=self.WAIT, **how, **TEXT), seconds)
        self.assertEqual({code for _, _, code in ends.values()}, {1}, ends)
        return {rank: errors for rank, (_, errors, _) in ends.items()}

    def test_missing_ranks_are_named_once(self):
        errors = self.errors(5, (0, 1, 3))
        self.assertRegex(errors[0], r"^baton: ranks 2, 4 of 5 did not come to 127\.0\.0\.1:\d+, where no rank came for 2 s: [^\n]*\n$")
        self.assertEqual((errors[1], errors[3]), ("", ""))

    def test_a_missing_rank_0_is_named_by_those_that_look_for_it(self):
        errors = self.errors(3, (2,))
        self.assertRegex(errors[2], r"^baton: rank 2 found no rank 0 at 127\.0\.0\.1:\d+ within 2 s: [^\n]*\n$")

    def test_a_name_without_an_address_is_reported_at_once(self):
        try:
            socket.getaddrinfo("no-such-host.invalid", 1)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                self.skipTest("no server of names answers here, so no name is unknown for certain")
        unknown = lambda *these: {**torch_variables(*these), "MASTER_ADDR": "no-such-host.invalid"}  # noqa: E731
        ends = ended(start(2, [BENCH, *SMALL], variables=unknown, extra={"BATON_MEETING_SECONDS": "3600"}, **TEXT), 300)
        for rank, (_, errors, code) in ends.items():
            self.assertEqual(code, 1)
            self.assertRegex(errors, rf"^baton: rank {rank} finds no address of 'no-such-host.invalid', [^\n]*\n$")

    def test_the_next_port_serves_where_one_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            port = taken.getsockname()[1]
            ends = ended(start(2, [BENCH, *SMALL], extra={"BATON_PORT": str(port)}, **TEXT))
        self.assertEqual({code for _, _, code in ends.values()}, {0}, ends)

    def test_strangers_do_not_come_in(self):
        port = free_port()
        first = start(2, [BENCH, *SMALL], ranks=(0,), extra={"BATON_PORT": str(port), "MASTER_PORT": "7"}, **TEXT)
        with socket.create_connection(("127.0.0.1", port), timeout=20) if self.listens(port) else socket.socket() as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" * 8)
            second = start(2, [BENCH, *SMALL], ranks=(1,), extra={"BATON_PORT": str(port), "MASTER_PORT": "7"}, **TEXT)
            ends = ended({**first, **second})
        self.assertEqual({code for _, _, code in ends.values()}, {0}, ends)

    def test_two_runs_at_one_port_stay_apart(self):
        port = str(free_port())
        one, other = ({"BATON_PORT": port, "MASTER_PORT": number} for number in ("7", "8"))
        few, many = [BENCH, *SMALL], [BENCH, *SMALL[2:], "--heads", "2"]
        first = start(2, few, ranks=(0,), extra=one, **TEXT)
        self.assertTrue(self.listens(int(port)))
        ends = [ended(start(2, many, extra=other, **TEXT)), ended({**first, **start(2, few, ranks=(1,), extra=one, **TEXT)})]
        self.assertEqual([code for run in ends for _, _, code in run.values()], [0] * 4, ends)

    @staticmethod
    def listens(port):
        for _ in range(200):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return True
            time.sleep(0.05)
        return False


class Failures(unittest.TestCase):
    """Nothing but the ranks themselves: no launcher ends those that are left."""

    def after(self, signal_number, rank):
        """Sends a rank a signal within a case; the errors and exit codes of the others, and the seconds until they had ended."""
        processes = start(3, [BENCH, *ENDLESS], **TEXT)
        self.addCleanup(ended, {rank: processes[rank]}, 0.1)
        wait_until_busy([process.pid for process in processes.values()], seconds=0.3)
        time.sleep(1.5)
        os.kill(processes[rank].pid, signal_number)
        began = time.monotonic()
        ends = ended({other: process for other, process in processes.items() if other != rank}, 40)
        self.assertNotIn(0, [code for _, _, code in ends.values()])
        return "".join(errors for _, errors, _ in ends.values()), time.monotonic() - began

    def test_a_killed_rank_is_named_with_its_case(self):
        for rank in (1, 0):
            errors, seconds = self.after(signal.SIGKILL, rank)
            self.assertRegex(errors, rf"(?m)^baton: rank {rank} is (gone|lost) in ring_scan/tcp/ranks:3/")
            self.assertLess(seconds, 12)

    def test_a_stopped_rank_is_named(self):
        errors, seconds = self.after(signal.SIGSTOP, 2)
        self.assertRegex(errors, r"(?m)^baton: rank 2 is (stopped|lost) in ring_scan/tcp/ranks:3/")
        self.assertLess(seconds, 20)

    def test_a_case_that_takes_too_long_ends_all(self):
        ends = ended(start(3, [BENCH, *ENDLESS[:-1], "2"], **TEXT), 30)
        self.assertEqual({code for _, _, code in ends.values()}, {5})
        self.assertIn("rank 0 exceeded the time limit in ring_scan/tcp/", ends[0][1])


if __name__ == "__main__":
    unittest.main()
