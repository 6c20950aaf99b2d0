# SPDX-License-Identifier: Apache-2.0
"""Which records a figure may show without a mark."""

import unittest

from baton.figures.launches import Launches
from plots.example import record


def simulated(run, commit):
    return record(run=run, commit=commit, executor="simulator", topology="t")


class Mixed(unittest.TestCase):
    def test_simulations_of_one_build_are_one_and_those_that_no_commit_tells_are_not(self):
        for commit, mixed in (("abc", False), ("abc-dirty-12345678", False), ("unknown", True), ("abc-dirty", True)):
            self.assertEqual(Launches([simulated("a", commit), simulated("b", commit)]).are_mixed(), mixed, commit)
        self.assertTrue(Launches([simulated("a", "abc-dirty-1"), simulated("a", "abc-dirty-2")]).are_mixed())


if __name__ == "__main__":
    unittest.main()
