# SPDX-License-Identifier: Apache-2.0
"""The table of the regret: a row for each source and topology, and what tells the worst contest from the others."""

import unittest

from baton.paper.sections import regret
from baton.regret import contests

FINE = contests.Judged("a-machine", "collective", "somewhere", contests.COMPOSED, "peer/ranks:2/forward", 2, 3,
                       "a_ring", "a_scan", 1.0, 3.0, 1.0)
WRONG = FINE._replace(contest="peer/ranks:4/forward", ranks=4, times=1.5, claimed=1.3)
UNSURE = FINE._replace(source="another", origin=contests.CALIBRATED, times=1.2, claimed=1.1)


def texts(row):
    return [cell and cell.text for cell in row.cells]


class Table(unittest.TestCase):
    def test_rows_of_sources_and_of_all(self):
        rows = {row.label: texts(row) for row in regret.table([FINE, WRONG, UNSURE]).rows}
        self.assertEqual(rows["`a-machine`, exchanges"],
                         ["2", "1", "1", "1.25×", "1.50×", "3.00×", "a_ring, fastest a_scan: ranks 4"])
        self.assertEqual(rows["`another`, exchanges"],
                         ["1", "0", "0", "1.20×", "1.20×", "3.00×", "a_ring, fastest a_scan"])
        self.assertEqual(rows["all"][:5], ["3", "1", "1", "1.20×", "1.50×"])
        self.assertEqual(rows["more than 2 ranks"][0], "1")
        self.assertEqual((rows[contests.CALIBRATED][0], rows[contests.COMPOSED][0]), ("1", "2"))

    def test_without_regret_no_contest_is_the_worst(self):
        self.assertIsNone(texts(regret.row("", "", [FINE], regret.worst_contest([FINE])))[-1])

    def test_the_section_stands_on_the_kept_contests(self):
        section = regret.section(None)
        self.assertIn(contests.sentence(contests.read()), section.blocks[0].markdown)


if __name__ == "__main__":
    unittest.main()
