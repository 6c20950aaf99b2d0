# SPDX-License-Identifier: Apache-2.0
"""Every registered name has a look of its own, which can be told from those that share its figures."""

import itertools
import os
import re
import subprocess
import unittest

from baton import looks
from plots.example import BENCHES

LISTED = re.compile(r"^  (\S+)", re.MULTILINE)
DARKER_THAN_WHITE = 3  # the ratio that WCAG 2 asks of the parts of a figure
FAR, FARTHER = 14, 30  # CIE 1976 distances; farther between names with the same mark


def linear(colour):
    """The red, green and blue of #rrggbb as shares of light, by the sRGB standard."""
    parts = (int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5))
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def brightness(colour):
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour)))


def lab(colour):
    red, green, blue = linear(colour)
    shares = ((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505, brightness(colour),
              (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089)
    x, y, z = (share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(lab(one), lab(other))) ** 0.5


def listed(bench, heading):
    """The names that a bench lists under a heading."""
    text = subprocess.run([bench, "--list"], capture_output=True, text=True, check=True).stdout
    return LISTED.findall(re.search(rf"^{heading}\n((?:  .*\n)*)", text, re.MULTILINE)[1])


class Looks(unittest.TestCase):
    def test_names_that_share_a_figure_are_told_apart(self):
        for table in (looks.COLLECTIVES, looks.METHODS):
            for (name, one), (other_name, other) in itertools.combinations(table.items(), 2):
                least = FARTHER if one.mark == other.mark else FAR
                self.assertGreater(distance(one.colour, other.colour), least, f"{name}, {other_name}")

    def test_colours_are_read_on_white_and_marks_are_known(self):
        for name, one in looks.LOOKS.items():
            self.assertGreaterEqual(1.05 / (brightness(one.colour) + 0.05), DARKER_THAN_WHITE, name)
            self.assertIn(one.mark, looks.MARKS)

    def test_a_name_of_a_user_keeps_its_look_and_takes_no_other(self):
        self.assertEqual(looks.look("my_scan"), looks.look("my_scan"))
        self.assertNotIn(looks.look("my_scan").colour, {one.colour for one in looks.LOOKS.values()})
        self.assertGreater(len({looks.look(f"my_scan_{number}") for number in range(64)}), 32)

    @unittest.skipUnless(len(BENCHES) >= 2 and all(map(os.path.isfile, BENCHES.values())), "the benches are not built")
    def test_every_listed_name_has_one(self):
        collective, operator = BENCHES["collective_bench"], BENCHES["operator_bench"]
        for bench, heading, table in ((collective, "collectives", looks.COLLECTIVES), (operator, "methods", looks.METHODS),
                                      (operator, "scans", looks.COLLECTIVES)):
            names = listed(bench, heading)
            self.assertTrue(names)
            self.assertEqual([name for name in names if name not in table], [])


if __name__ == "__main__":
    unittest.main()
