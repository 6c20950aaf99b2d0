# SPDX-License-Identifier: Apache-2.0
"""`./run` counts the GPUs that CUDA programs would see."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TWO = ("GPU 0: NVIDIA H200 (UUID: GPU-11aa0000-0000-0000-0000-000000000000)\n"
       "GPU 1: NVIDIA H200 (UUID: GPU-11bb0000-0000-0000-0000-000000000000)\n")
PARTS = ("GPU 0: NVIDIA H200 (UUID: GPU-22cc0000-0000-0000-0000-000000000000)\n"
         "  MIG 1g.18gb     Device  0: (UUID: MIG-33aa0000-0000-0000-0000-000000000000)\n"
         "  MIG 1g.18gb     Device  1: (UUID: MIG-33bb0000-0000-0000-0000-000000000000)\n")


def count(machine, visible=None):
    """What count_gpus prints where nvidia-smi lists `machine`, or is not there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        stub = pathlib.Path(folder, "nvidia-smi")
        stub.write_text("#!/bin/bash\n" + ("exit 9\n" if machine is None else f"printf %s '{machine}'\n"), encoding="utf-8")
        stub.chmod(0o755)
        script = "set -euo pipefail; source cmake/build.sh; count_gpus"
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env={**environment, "PATH": f"{folder}:{os.environ['PATH']}"},
                              capture_output=True, text=True, timeout=60, check=True)
    return int(done.stdout)


class CountGpus(unittest.TestCase):
    def test_all_are_seen_where_nothing_is_said(self):
        self.assertEqual([count(machine) for machine in (TWO, PARTS, "", None)], [2, 1, 0, 0])

    def test_numbers_count_to_the_first_that_is_none(self):
        for visible, seen in (("0", 1), ("1,0", 2), ("0,-1,1", 1), ("-1", 0), ("0,2,1", 1), ("2", 0), ("0,NoDevFiles", 1),
                              ("NoDevFiles", 0), ("", 0), (",0", 0), ("0,,1", 1), (" 0, 1", 2), ("1gpu,0", 2), ("all", 0), ("0,GPU-11b", 1)):
            self.assertEqual(count(TWO, visible), seen, visible)

    def test_names_count_to_the_first_that_is_none_or_could_be_several(self):
        for visible, seen in (("GPU-11aa", 1), ("GPU-11bb0000-0000-0000-0000-000000000000,GPU-11aa", 2), ("GPU-11", 0), ("GPU-", 0), ("GPU-9", 0),
                              ("GPU-11aa,1", 1), ("GPU-11aa,GPU-9,GPU-11bb", 1), ("gpu-11aa", 0)):
            self.assertEqual(count(TWO, visible), seen, visible)
        self.assertEqual(count(PARTS, "GPU-"), 0)  # though it fits one GPU alone

    def test_one_named_twice_leaves_none(self):
        for visible in ("0,0", "0,1,0", "GPU-11aa,GPU-11aa", "GPU-11aa,GPU-11aa0"):
            self.assertEqual(count(TWO, visible), 0, visible)

    def test_one_part_of_a_gpu_is_seen(self):
        for visible, seen in (("MIG-33aa", 1), ("MIG-33aa,MIG-33bb", 1), ("MIG-33", 0), ("MIG-4", 0), ("MIG-33aa,MIG-33aa", 0)):
            self.assertEqual(count(PARTS, visible), seen, visible)

    def test_none_is_seen_where_the_driver_shows_none(self):
        for visible in ("0", "0,1", "GPU-11aa", "MIG-33aa"):
            self.assertEqual((count("", visible), count(None, visible)), (0, 0), visible)


if __name__ == "__main__":
    unittest.main()
