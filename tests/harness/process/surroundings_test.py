# SPDX-License-Identifier: Apache-2.0
"""What launchers and schedulers leave around a bench: python3 surroundings_test.py COLLECTIVE_BENCH DOCTOR_READINGS"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

from torchrun_like import INHERITED

BENCH, DOCTOR_READINGS = sys.argv.pop(1), sys.argv.pop(1)
HERE = socket.gethostname()
SMALL = ["--collectives", "all_scan", "--heads", "1", "-n", "5", "-w", "1", "-N", "1"]
INTERACTIVE = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_ID": "4294967290",
               "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_STEP_NODELIST": HERE,
               "SLURM_SRUN_COMM_PORT": "36851", "SLURM_PTY_PORT": "44263"}
POD = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "tcp://10.0.0.1:23456"}
BATCH = {"SLURM_JOBID": "77", "SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NODELIST": f"{HERE},other",
         "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NTASKS": "2"}


class InAnEnvironment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_in(self, variables, *words, launcher=()):
        outer = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
        return subprocess.run([*launcher, *words], env={**outer, **variables}, capture_output=True, text=True, timeout=600,
                              check=False)

    @staticmethod
    def reports(done):
        """What a program said, but for its progress, which a busy machine makes it tell."""
        return "".join(line for line in done.stderr.splitlines(True) if line.startswith("baton: "))


class Surroundings(InAnEnvironment):
    def errors_with_rows(self, ranks, variables, *more, launcher=()):
        """What a bench says, whose rows have so many ranks."""
        path = self.folder / "records.jsonl"
        path.unlink(missing_ok=True)
        done = self.run_in(variables, BENCH, *SMALL, *more, "-J", path, launcher=launcher)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({record["ranks"] for record in map(json.loads, path.read_text().splitlines())}, {ranks})
        return self.reports(done)

    def test_a_launch_of_one_rank_is_none(self):
        mpirun = ("mpirun", "--allow-run-as-root", "-n", "1")
        for name, variables, launcher in (("SLURM_STEP_ID", INTERACTIVE, ()), ("WORLD_SIZE", POD, ()),
                                          ("OMPI_COMM_WORLD_SIZE", {}, mpirun)):
            with self.subTest(name):
                errors = self.errors_with_rows(2, variables, "--ranks", "2", launcher=launcher)
                self.assertRegex(errors, rf"^baton: [^\n]*{name}=[^\n]*: these speak of one rank, so they are left aside, "
                                         r"and ranks are started on this host\n$")

    def test_the_doctor_starts_ranks_too(self):
        done = self.run_in({"PMI_RANK": "0", "PMI_SIZE": "1"}, DOCTOR_READINGS, "--ranks", "2", "--repeats", "3", "--executor", "mpi")
        self.assertIn("PMI_SIZE=1", done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["ranks"]), 2)

    def test_mpiexec_takes_no_allocation(self):
        hostfile = self.folder / "hosts"
        hostfile.write_text("other slots=2\n")
        for variables in (BATCH, {"PE_HOSTFILE": "/nowhere", "JOB_ID": "3", "ARC": "x", "SGE_ROOT": "/x"},
                          {"OMPI_MCA_orte_default_hostfile": str(hostfile)}):
            self.assertEqual(self.errors_with_rows(2, variables, "--ranks", "2"), "")


class WordsOfLaunchers(InAnEnvironment):
    def stub(self, text):
        """An environment whose mpiexec is a script."""
        script = self.folder / "mpiexec"
        script.write_text("#!/bin/sh\n" + text)
        script.chmod(0o755)
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def failed(self, code, variables, *more):
        done = self.run_in(variables, BENCH, *SMALL, "--ranks", "2", *more)
        self.assertEqual(done.returncode, code, done.stderr)
        return self.reports(done)

    def test_a_foreign_mpiexec_is_named_once(self):
        errors = self.failed(1, self.stub("echo 'HYDRA build details:'\nexit 255\n"))
        self.assertRegex(errors, r"(?m)^baton: \S+/mpiexec is not the mpiexec of Open MPI [^\n]* calls itself 'HYDRA build details:'; ")
        self.assertEqual(errors.count("baton: "), 1, errors)

    def test_a_missing_mpiexec_is_named_once(self):
        self.assertRegex(self.failed(1, {"PATH": str(self.folder)}), r"^baton: cannot start mpiexec: No such file or directory\n$")

    def test_code_2_of_mpiexec_is_no_usage_error(self):
        errors = self.failed(1, self.stub("[ $1 = --version ] && echo 'mpiexec (OpenRTE) 4.1.4' && exit 0\nexit 2\n"))
        self.assertIn("ended outside of its cases with exit code 2", errors)

    def test_the_notice_of_a_launch_that_began_no_case_is_shown_once(self):
        errors = self.failed(1, {"OMPI_MCA_plm": "slurm"})
        self.assertRegex(errors, r"^baton: launch 1 ended outside of its cases with exit code 1: [^\n]*orte_plm_base_select failed[^\n]*"
                                 r"; it is started again\nbaton: launch 1 ended in the same way again\n$")


if __name__ == "__main__":
    unittest.main()
