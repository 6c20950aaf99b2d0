# SPDX-License-Identifier: Apache-2.0
"""Chosen names look unlike one another, and every other name has a look that is read on white and depends on it alone."""

import itertools
import unittest

from baton import looks

DARKER_THAN_WHITE = 3  # the ratio that WCAG 2 asks of the parts of a figure
FAR = 14  # percent of the way through the cube of colours, between names with the same mark
OTHERS = [f"{family}{number}" for family in ("all_scan_", "zeco_", "my_own_") for number in range(64)]


def parts(colour):
    return [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]


class Looks(unittest.TestCase):
    def test_chosen_names_are_distinguished(self):
        for table in (looks.COLLECTIVES, looks.METHODS):
            for (name, one), (other_name, other) in itertools.combinations(table.items(), 2):
                apart = 100 * max(abs(a - b) for a, b in zip(parts(one.colour), parts(other.colour)))
                self.assertTrue(one.mark != other.mark or apart > FAR, f"{name}, {other_name}")

    def test_colours_are_read_on_white_and_marks_are_known(self):
        for name in (*looks.LOOKS, *OTHERS):
            colour, mark = looks.look(name)
            self.assertGreaterEqual(1.05 / (looks.light_of(parts(colour)) + 0.05), DARKER_THAN_WHITE, name)
            self.assertIn(mark, looks.MARKS)

    def test_other_names_differ_and_stay_near_their_family(self):
        self.assertGreater(len(set(map(looks.look, OTHERS))), 0.95 * len(OTHERS))
        blue = looks.hue_of(looks.look("all_scan").colour)
        for name in OTHERS[:128]:
            away = abs(looks.hue_of(looks.look(name).colour) - blue)
            self.assertLess(min(away, 1 - away), 1.2 * looks.FAMILY, name)


if __name__ == "__main__":
    unittest.main()
