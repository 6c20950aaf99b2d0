# SPDX-License-Identifier: Apache-2.0
"""Every command of the package says how it is used, and an unknown one is refused in a line."""

import subprocess
import sys
import unittest

from baton import __main__ as package
from baton.figures import command as figures


def run(*words):
    return subprocess.run([sys.executable, "-m", "baton", *words], capture_output=True, text=True, timeout=120)


class Commands(unittest.TestCase):
    def test_every_command_and_figure_has_help(self):
        for words in [[name] for name in package.COMMANDS] + [["figure", name] for name in figures.FIGURES]:
            with self.subTest(" ".join(words)):
                done = run(*words, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage:", done.stdout)

    def test_an_unknown_command_is_refused(self):
        done = run("reprot")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        self.assertIn("reprot", done.stderr)

    def test_a_terminal_gets_no_character_that_it_obeys(self):
        self.assertIn(r"unknown command '\x1b[31m\u202e'", run("\x1b[31m\u202e").stderr)
        self.assertEqual(run("report", "no\nfile").stderr, "report: no\\nfile: No such file or directory\n")


if __name__ == "__main__":
    unittest.main()
