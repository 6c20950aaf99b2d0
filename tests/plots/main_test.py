# SPDX-License-Identifier: Apache-2.0
"""Every command of the package says how it is used, and an unknown one is refused in a line."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from baton import __main__ as package
from baton.report.figure import KINDS
from plots.example import PACKAGE, run, run_here


class Commands(unittest.TestCase):
    def test_every_command_and_figure_has_help(self):
        for words in [[name] for name in package.COMMANDS] + [["figure", name] for name in (*KINDS, "trace")]:
            with self.subTest(" ".join(words)):
                done = run_here(*words, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage:", done.stdout)

    def test_an_unknown_command_is_refused(self):
        done = run("reprot")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("reprot", done.stderr)

    def test_they_run_from_a_folder_of_any_name(self):
        for name in ("a:b", "a;b", "a\n", "-a b", "ä"):
            with self.subTest(name), tempfile.TemporaryDirectory(suffix=name) as folder:
                (pathlib.Path(folder) / "baton").symlink_to(PACKAGE)
                done = subprocess.run([sys.executable, f"{folder}/baton", "report", "--help"], capture_output=True, text=True, cwd=folder,
                                      check=False, env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("usage: ./run report", done.stdout)

    def test_a_terminal_gets_no_character_that_it_obeys(self):
        self.assertIn(r"unknown command '\x1b[31m\u202e'", run("\x1b[31m\u202e").stderr)
        self.assertEqual(run("report", "no\nfile").stderr, "report: no\\nfile: No such file or directory\n")


if __name__ == "__main__":
    unittest.main()
