# SPDX-License-Identifier: Apache-2.0
"""Sources stand behind letters: one a row, another at each cell of another launch, and none for what is derived."""

import unittest

from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.origins import Letters, letter, shown_rows
from plots.example import record


def measured(**changes):
    return cells.timed(record(**changes), "mine")


class Sources(unittest.TestCase):
    def test_a_row_has_the_letter_of_most_of_its_cells(self):
        row = Row("`all_scan`", "measured", [measured(), measured(), measured(run="b", commit="abc-dirty"), None])
        letters = Letters([row])
        self.assertEqual(letters.of_row(row), "a")
        self.assertEqual([letters.of_cell(row, cell) for cell in row.cells], ["", "", "b", ""])
        self.assertEqual(letters.notes(), [("a", "mine, commit abc, launch a"),
                                           ("b", "mine, commit abc-dirty, launch b")])

    def test_crowded_cores_are_a_source_of_their_own(self):
        row = Row("", "measured", [measured(), measured(conditions={"oversubscribed": True})])
        self.assertEqual(Letters([row]).notes()[1], ("b", "mine (oversubscribed), commit abc, launch a"))

    def test_equal_simulations_are_one_source_whichever_launch_made_them(self):
        one, other = (cells.timed(record(executor="simulator", topology="t", run=run)) for run in "ab")
        letters = Letters([Row("", "simulated", [one, other])])
        self.assertEqual(letters.notes(), [("a", "topology t, commit abc, 2030-01-01")])

    def test_what_is_derived_has_no_letter(self):
        row = Row("", "over", [cells.derived(2, "2", "", "measured / measured")])
        self.assertEqual((Letters([row]).of_row(row), Letters([row]).notes()), ("", []))

    def test_letters_do_not_end(self):
        self.assertEqual([letter(number) for number in (0, 25, 26, 27, 52)], ["a", "z", "aa", "ab", "ba"])


class EmptyRows(unittest.TestCase):
    def test_they_are_left_out_and_their_label_goes_on(self):
        rows = [Row("`a`", "published", [None]), Row("", "simulated", [measured()]), Row("", "ratio", [None]),
                Row("`b`", "published", [None]), Row("`c`", "measured", [measured()]), Row("", "exposed", [measured()])]
        self.assertEqual([(row.label, row.kind) for row in shown_rows(rows)],
                         [("`a`", "simulated"), ("`c`", "measured"), ("", "exposed")])


if __name__ == "__main__":
    unittest.main()
