# SPDX-License-Identifier: Apache-2.0
"""The command as a user runs it: what it cannot use is said in one line, and what is kept stays."""

import unittest

from baton.regret import contests
from plots.example import InFolder, run


class BadInput(InFolder):
    def test_it_is_answered_in_one_line_and_nothing_is_written(self):
        before = contests.KEPT.read_bytes()
        self.assert_one_line(run("regret", "--programs", self.folder), "cannot run")
        self.assertEqual(contests.KEPT.read_bytes(), before)


class Head(unittest.TestCase):
    def test_the_kept_file_says_how_it_was_made(self):
        self.assertTrue(contests.KEPT.read_text(encoding="utf-8").startswith(
            "# Made by `PYTHONPATH=plots python3 -m baton regret --programs build/cpu/bin` on 20"))


if __name__ == "__main__":
    unittest.main()
