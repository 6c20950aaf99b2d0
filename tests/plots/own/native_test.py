# SPDX-License-Identifier: Apache-2.0
"""What natives in Python say before anything runs; wheel_test.py runs them."""

import unittest

import baton
from baton.own.native import _count


class Claims(unittest.TestCase):
    def test_numbers_and_texts_over_ranks_and_bytes(self):
        for claim, found in ((3, 3), ("P-1", 7), ("N", 64), ("2*N*(P-1)//P", 112)):
            self.assertEqual(_count("one", claim, "PN")(8, 64), found)

    def test_what_is_no_count_is_refused(self):
        for claim in ("P^2", "Q", "P-", "len('a')", 1.5, "1//0", ""):
            with self.assertRaisesRegex(baton.Error, "native one: expected a number or a text of"):
                _count("native one", claim, "PN")

    def test_a_bound_needs_both(self):
        with self.assertRaisesRegex(baton.Error, "give both, or none"):
            baton.native("one", hops="P-1")


class WithoutTheCompiledPart(unittest.TestCase):
    def test_the_error_says_what_makes_it(self):
        with self.assertRaisesRegex(ImportError, "./run wheel"):
            baton.native("one")(lambda call: None)


if __name__ == "__main__":
    unittest.main()
