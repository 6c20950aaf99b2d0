# SPDX-License-Identifier: Apache-2.0
"""The wheel that `./run wheel` left in the folder of the first argument, in a bare virtual environment with NumPy."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WHEELS = sorted(pathlib.Path(sys.argv[1]).glob("baton_bench-*.whl"), key=os.path.getmtime)
BUILDER = os.path.join(sys.argv[1], "venv/bin/python")  # the Python that the wheel is for


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(cls.folder.cleanup)
        cls.python = f"{cls.folder.name}/venv/bin/python"
        subprocess.run([BUILDER if os.path.exists(BUILDER) else sys.executable, "-m", "venv", f"{cls.folder.name}/venv"], check=True)
        cls.install("--no-index", "--no-deps", WHEELS[-1])
        cls.has_numpy = cls.install("--quiet", "numpy", check=False).returncode == 0

    @classmethod
    def install(cls, *words, check=True):
        return subprocess.run([cls.python, "-m", "pip", "install", *words], check=check, capture_output=True)

    def run_program(self, *words, **variables):
        """What a program said, which starts its own ranks, and its exit code."""
        if not self.has_numpy:
            self.skipTest("numpy cannot be had here")
        environment = {**os.environ, "PYTHONPATH": "", **variables}  # the wheel's package
        return subprocess.run([self.python, *map(str, words)], cwd=self.folder.name, env=environment, capture_output=True,
                              text=True, check=False, timeout=300)


def main():
    if not WHEELS:
        print("no wheel here: ./run wheel makes one")
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
