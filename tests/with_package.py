# SPDX-License-Identifier: Apache-2.0
"""Runs a program of tests, `FILE ARGS...` or `-m MODULE ARGS...`, that finds the package and the tests whatever signs their
path has: PYTHONPATH cannot name a folder with a colon."""

import os
import pathlib
import runpy
import sys

TESTS = pathlib.Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:1] = [str(TESTS.parent / "plots"), str(TESTS)]
    is_module = sys.argv[1] == "-m"
    del sys.argv[:1 + is_module]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
