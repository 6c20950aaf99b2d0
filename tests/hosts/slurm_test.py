# SPDX-License-Identifier: Apache-2.0
"""The benches under real Slurm daemons on four hosts: python3 slurm_test.py COLLECTIVE_BENCH"""

import json
import os
import re
import sys
import time
import unittest

import hosts
import slurm_cluster

BENCH = os.path.abspath(sys.argv.pop(1))
LAUNCHING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "launching.md")
SMALL = ["--heads", "1", "--d-k", "16", "--d-v", "16", "-n", "5", "-w", "1"]


class UnderSlurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = slurm_cluster.Slurm(4)
        cls.slurm.__enter__()
        cls.addClassCleanup(cls.slurm.__exit__)

    def bench(self, *srun):
        path = f"{self.slurm.folder}/{self.id()}.jsonl"
        done = self.slurm.run(self.slurm.words("srun", *srun, BENCH, "--collectives", "all_scan,hierarchical_scan", *SMALL, "-J", path))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(path) as file:
            return done.stdout, [json.loads(line) for line in file]

    def assert_rows_on_four_hosts(self, records):
        self.assertEqual([record["name"] for record in records], ["all_scan", "hierarchical_scan"])
        for record in records:
            self.assertEqual((record["wrong"], record["ranks"], record["ranks_a_node"]), (0, 8, 2))
            self.assertEqual(record["hosts"]["placement"], "4 hosts of 2")

    def test_srun_with_pmix_starts_mpi(self):
        output, records = self.bench("--mpi=pmix", "-N", "4", "-n", "8", "--distribution=block")
        self.assertIn("# mpi, 8 ranks on 4 hosts of 2", output)
        self.assert_rows_on_four_hosts(records)

    def test_srun_without_mpi_starts_tcp(self):
        output, records = self.bench("--mpi=none", "-N", "4", "-n", "8", "--distribution=block")
        self.assertIn("# tcp, 8 ranks on 4 hosts of 2", output)
        self.assert_rows_on_four_hosts(records)

    def test_the_batch_script_of_the_documents_runs(self):
        with open(LAUNCHING) as file:
            script = re.search(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", file.read(), re.DOTALL).group(1)
        script = script.replace("build/cpu/bin/collective_bench", BENCH).replace("-b 64K -e 16M -f 4", " ".join(SMALL))
        path = self.slurm.folder + "/job"
        with open(path + ".sh", "w") as file:
            file.write(script)
        submitted = self.slurm.run(["env", "-C", self.slurm.folder, *self.slurm.words("sbatch", "--wait", path + ".sh")], timeout=80)
        written = [name for name in os.listdir(self.slurm.folder) if name.startswith("baton-") and name.endswith(".out")]
        self.assertEqual(len(written), 1, submitted.stderr)
        with open(f"{self.slurm.folder}/{written[0]}") as file:
            output = file.read()
        self.assertEqual(submitted.returncode, 0, output)
        self.assertIn("ranks on 4 hosts of 2", output)
        with open(self.slurm.folder + "/records.jsonl") as file:
            self.assertTrue(all(json.loads(line)["wrong"] == 0 for line in file))

    def test_a_killed_rank_ends_the_step_with_its_name(self):
        path = self.slurm.folder + "/killed.jsonl"
        launched = self.slurm.start(self.slurm.words("srun", "--mpi=pmix", "-N", "4", "-n", "8", "--distribution=block", BENCH,
                                                     "--collectives", "ring_scan", "--heads", "1", "-n", "1000000", "-T", "40",
                                                     "-J", path))
        self.addCleanup(launched.kill)
        deadline = time.monotonic() + 30
        while len(self.slurm.ranks(2)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(4)
        os.kill(self.slurm.ranks(2)[5], 9)
        _, errors = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, 0)
        self.assertIn("task 5: Killed", errors)  # Slurm leaves the others no time to speak


if __name__ == "__main__":
    hosts.skip_if(slurm_cluster.missing())
    unittest.main()
