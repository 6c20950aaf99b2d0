# SPDX-License-Identifier: Apache-2.0
"""What `./run bench` draws of the records that it left, on a machine with GPUs and on one without."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from plots.example import PLOTS, InFolder, draws, layer, local, on_gpus, record, write

DRAWN = ("exchange.md", "exchange_4_isolated.csv", "operator.md", "operator.csv", "time_against_size.png",
         "operator_time.png")
SUITES = "suite_of_collective_bench; suite_of_operator_bench"


@draws
@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class RunDraw(InFolder):
    def call(self, command, gpus):
        """Runs a command with the functions of `run`, whose records are in the test's folder."""
        of_run = f"sed -e '$d' -e '/^cd /d' -e 's|^readonly results=.*|readonly results={self.folder}|' run"
        script = f"source <({of_run}); gpus={gpus}; steps 1; {command}"
        path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(["bash", "-c", script], cwd=PLOTS.parent, env={**os.environ, "PATH": path},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_records_of_gpus_are_drawn_into_a_folder_of_their_own(self):
        shape = {"dtype": "bf16", "executor": "peer"}
        write(self.folder / "collectives.jsonl", [record()])
        write(self.folder / "gpu_collectives.jsonl", [on_gpus()])
        write(self.folder / "gpu_operators.jsonl", [layer(**shape), local(**shape)])
        self.call("draw", gpus=4)
        for name in DRAWN:
            self.assertTrue((self.folder / "gpu" / name).is_file(), name)
        self.assertTrue((self.folder / "table2.md").is_file())

    def test_without_gpus_nothing_is_asked_of_them(self):
        write(self.folder / "collectives.jsonl", [record()])
        self.assertNotIn("gpu", self.call(f"{SUITES}; draw", gpus=0).replace(str(self.folder), ""))
        self.assertFalse((self.folder / "gpu").exists())

    def test_the_launches_say_where_their_records_go(self):
        for gpus, executors in ((1, ["nccl"]), (4, ["peer,peer_bf16,nccl", "peer"])):
            lines = [line for line in self.call(SUITES, gpus).splitlines() if "--executor" in line]
            self.assertEqual([line.split()[1] for line in lines], executors)
            for line in lines:
                self.assertIn(f"--ranks {gpus} ", line)
                self.assertIn(f"-J {self.folder}/gpu_", line)


if __name__ == "__main__":
    unittest.main()
