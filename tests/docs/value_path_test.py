# SPDX-License-Identifier: Apache-2.0
"""docs/tour.md lists the files that the value of a row passes. They are of this tree, and they get no more and no longer.

  python3 tests/docs/value_path_test.py --write    writes the lines that they have now, and leaves out files that are gone
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs/tour.md"
FILES, LINES = 88, 10_800  # at most; tests/value_path.py measures which files they are
LISTED = re.compile(r"^((?:collectives|harness)/[\w/]+\.[ch]pp) +(\d+)\n", re.MULTILINE)
SUM = re.compile(r"\b\d+ files, [\d,]+ lines\b")


def lines_of(path):
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def rewritten(text):
    text = LISTED.sub(lambda one: f"{one[1]:52} {lines_of(one[1]):4}\n" if (ROOT / one[1]).exists() else "", text)
    counts = [int(lines) for _, lines in LISTED.findall(text)]
    return SUM.sub(f"{len(counts)} files, {sum(counts):,} lines", text)


class ValuePath(unittest.TestCase):
    def test_files_exist_and_are_no_more_and_no_longer(self):
        listed = dict(LISTED.findall(TOUR.read_text(encoding="utf-8")))
        self.assertGreater(len(listed), 10)
        self.assertEqual([path for path in listed if not (ROOT / path).exists()], [])
        self.assertLessEqual(len(listed), FILES)
        self.assertLessEqual(sum(map(lines_of, listed)), LINES)

    def test_the_sum_is_that_of_the_list(self):
        text = TOUR.read_text(encoding="utf-8")
        counts = [int(lines) for _, lines in LISTED.findall(text)]
        self.assertIn(f"{len(counts)} files, {sum(counts):,} lines", text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        TOUR.write_text(rewritten(TOUR.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        unittest.main()
