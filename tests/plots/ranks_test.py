# SPDX-License-Identifier: Apache-2.0
"""A program starts its own ranks: their variables, their number, and the code that it ends with."""

import os
import subprocess
import unittest

from baton import ranks
from plots.example import python

PROGRAM = """
import os, sys, time
from baton import ranks
ranks.GRACE_SECONDS = 0.5
if "RANK" not in os.environ:
    sys.exit(ranks.run(ranks.wanted(sys.argv[1:], 2)))
sys.stdout.write(f"{os.environ['RANK']} of {os.environ['WORLD_SIZE']} {sys.argv[1:]}\\n")
sys.stdout.flush()
if "fail" in sys.argv:
    sys.exit(7) if os.environ["RANK"] == "1" else None
    time.sleep(600)
"""


def run(*words):
    """(lines in order, exit code) of the program."""
    free = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(python(PROGRAM, *words), env=free, capture_output=True, text=True, check=False)
    return sorted(done.stdout.splitlines()), done.returncode


class Ranks(unittest.TestCase):
    def test_each_has_its_number_and_all_arguments(self):
        self.assertEqual(run("--ranks", "3"), ([f"{rank} of 3 ['--ranks', '3']" for rank in range(3)], 0))

    def test_the_most_of_a_list_is_started_else_as_many_as_there_are_cores(self):
        self.assertEqual(ranks.wanted(["--ranks", "2,8,4"], 2), 8)
        self.assertEqual(ranks.wanted(["-b", "1M", "--ranks=2"], 4), 2)
        for words in ([], ["--ranks", "x"], ["--ranks"]):
            self.assertEqual([ranks.wanted(words, cores) for cores in (1, 3, 64)], [2, 3, 4])

    def test_one_that_fails_ends_the_others_and_its_code_is_reported(self):
        ranks_before, code = run("--ranks", "2", "fail")
        self.assertEqual((len(ranks_before), code), (2, 7))


if __name__ == "__main__":
    unittest.main()
