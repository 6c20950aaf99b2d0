# SPDX-License-Identifier: Apache-2.0
"""Which hosts rank 0 serves, without MPI and on two hosts: python3 meeting_test.py COLLECTIVE_BENCH"""

import os
import sys
import unittest

import hosts

BENCH = os.path.abspath(sys.argv.pop(1))
SMALL = ["--heads", "1", "--collectives", "ring_scan", "-n", "5"]
NAMED = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_SRUN_COMM_PORT": "41000", "SLURM_STEP_NUM_TASKS": "2",
         "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_NODELIST": "host[0-1]"}
UNNAMED = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "host0", "MASTER_PORT": "29500"}
NONE = [word for name in (*NAMED, *UNNAMED, "RANK", "SLURM_PROCID", "BATON_SECRET", "BATON_SECRET_FILE") for word in ("-u", name)]


class ServedHosts(unittest.TestCase):
    def ends(self, variables, rank_variable, **more):
        """The exit codes and errors of two ranks, each on its host."""
        with hosts.Hosts(2) as both:
            ranks = [both.start(["env", *NONE, *(f"{name}={value}" for name, value in
                                                 {**variables, **more, rank_variable: rank}.items()), BENCH, *SMALL], rank)
                     for rank in range(2)]
            errors = [rank.communicate(timeout=120)[1] for rank in ranks]
            return [rank.returncode for rank in ranks], errors

    def test_those_that_slurm_names(self):
        codes, errors = self.ends(NAMED, "SLURM_PROCID")
        self.assertEqual(codes, [0, 0], errors)

    def test_none_that_the_launcher_does_not_name(self):
        others = {**NAMED, "SLURM_STEP_NODELIST": "host0"}
        for variables, rank in ((UNNAMED, "RANK"), (others, "SLURM_PROCID")):
            codes, errors = self.ends(variables, rank, BATON_MEETING_SECONDS="3")
            self.assertEqual(codes, [1, 1], errors)
            self.assertRegex(errors[1], r"^baton: rank 1 was not let in by rank 0 at host0:\d+ [^\n]* set BATON_SECRET [^\n]*\n$")

    def test_all_with_a_secret(self):
        codes, errors = self.ends(UNNAMED, "RANK", BATON_SECRET="words that nobody knows")
        self.assertEqual(codes, [0, 0], errors)


if __name__ == "__main__":
    hosts.skip_if(hosts.missing())
    unittest.main()
