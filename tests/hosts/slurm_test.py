# SPDX-License-Identifier: Apache-2.0
"""The benches under real Slurm daemons on four hosts: python3 slurm_test.py COLLECTIVE_BENCH"""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import unittest

import hosts
import slurm_cluster

BENCH = os.path.abspath(sys.argv.pop(1))
LAUNCHING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "launching.md")
SMALL = ["--heads", "1", "--d-k", "16", "--d-v", "16", "-n", "5", "-w", "1"]


STARTS = 5


class BrokenStart(Exception):
    """MPI_Init of a step crashed or hung."""


def in_a_cluster(test):
    """Gives a test Slurm on four hosts, anew where MPI did not start.

    On Debian 12, 10 of 86 starts of a program with nothing but MPI_Init and one exchange crash or hang under Slurm's plugin for
    PMIx, and the hosts of such a step may never be idle again. A test sees it by the heading of a bench, which follows MPI_Init.
    """
    @functools.wraps(test)
    def run(self):
        for start in range(STARTS):
            with slurm_cluster.Slurm(4) as self.slurm:
                try:
                    return test(self)
                except BrokenStart as broken:
                    print(f"start {start + 1}: {broken}", flush=True)
        raise AssertionError(f"MPI did not start {STARTS} times")
    return run


class UnderSlurm(unittest.TestCase):
    def bench(self, *srun):
        path = f"{self.slurm.folder}/records.jsonl"
        command = self.slurm.words("srun", *srun, BENCH, "--collectives", "all_scan,hierarchical_scan", *SMALL, "-J", path)
        launched = self.slurm.start(command)
        output, errors = self.end_of(launched)
        if "# baton" not in output:
            raise BrokenStart(errors)
        self.assertEqual(launched.returncode, 0, output + errors)
        with open(path) as file:
            return output, [json.loads(line) for line in file]

    def end_of(self, launched, seconds=60):
        """What a step wrote to its outputs until it ended."""
        try:
            return launched.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(launched.pid, signal.SIGKILL)
            output, errors = launched.communicate()
            return output, f"{errors}it did not end within {seconds} s"

    def assert_rows_on_four_hosts(self, records):
        self.assertEqual([record["name"] for record in records], ["all_scan", "hierarchical_scan"])
        for record in records:
            self.assertEqual((record["wrong"], record["ranks"], record["ranks_per_node"]), (0, 8, 2))
            self.assertEqual(record["hosts"]["placement"], "4 hosts of 2")

    @in_a_cluster
    def test_srun_with_pmix_starts_mpi(self):
        output, records = self.bench("--mpi=pmix", "-N", "4", "-n", "8", "--distribution=block")
        self.assertIn("# mpi, 8 ranks on 4 hosts of 2", output)
        self.assert_rows_on_four_hosts(records)

    @in_a_cluster
    def test_srun_without_mpi_starts_tcp(self):
        output, records = self.bench("--mpi=none", "-N", "4", "-n", "8", "--distribution=block")
        self.assertIn("# tcp, 8 ranks on 4 hosts of 2", output)
        self.assert_rows_on_four_hosts(records)

    @in_a_cluster
    def test_the_batch_script_of_the_documents_runs(self):
        with open(LAUNCHING) as file:
            script = re.search(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", file.read(), re.DOTALL).group(1)
        script = script.replace("build/cpu/bin/collective_bench", BENCH).replace("-b 64K -e 16M -f 4", " ".join(SMALL))
        path = self.slurm.folder + "/job"
        with open(path + ".sh", "w") as file:
            file.write(script)
        submitted = self.slurm.start(["env", "-C", self.slurm.folder, *self.slurm.words("sbatch", "--wait", path + ".sh")])
        _, errors = self.end_of(submitted)
        written = [name for name in os.listdir(self.slurm.folder) if name.startswith("baton-") and name.endswith(".out")]
        self.assertEqual(len(written), 1, errors)
        with open(f"{self.slurm.folder}/{written[0]}") as file:
            output = file.read()
        if "# baton" not in output:
            raise BrokenStart(output)
        self.assertEqual(submitted.returncode, 0, output)
        self.assertIn("ranks on 4 hosts of 2", output)
        with open(self.slurm.folder + "/records.jsonl") as file:
            self.assertTrue(all(json.loads(line)["wrong"] == 0 for line in file))

    @in_a_cluster
    def test_a_killed_rank_ends_the_step_with_its_name(self):
        path = self.slurm.folder + "/killed.jsonl"
        launched = self.slurm.start(self.slurm.words("srun", "--mpi=pmix", "-N", "4", "-n", "8", "--distribution=block", BENCH,
                                                     "--collectives", "ring_scan", "--heads", "1", "-n", "1000000", "-T", "40",
                                                     "-J", path))
        killer = threading.Timer(60, os.killpg, (launched.pid, signal.SIGKILL))
        killer.start()
        has_started = any(line.startswith("# baton") for line in launched.stdout)
        killer.cancel()
        if not has_started:
            raise BrokenStart(launched.stderr.read())
        os.kill(self.slurm.ranks(2)[5], signal.SIGKILL)
        _, errors = self.end_of(launched)
        self.assertNotEqual(launched.returncode, 0)
        self.assertIn("task 5: Killed", errors)  # Slurm leaves the others no time to speak


if __name__ == "__main__":
    hosts.skip_if(slurm_cluster.missing())
    unittest.main()
