# SPDX-License-Identifier: Apache-2.0
"""Cells of a CSV are read with their remarks, and odd numbers are refused with line and column."""

import pathlib
import tempfile
import unittest

from baton.checks import ResultsError
from baton.predict import cells

HEAD = "# a remark\nsystem,nccl,collective,gpus,total_bytes,microseconds\n\n"


def read(*lines):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "c.csv")
        path.write_text(HEAD + "\n".join(lines), encoding="utf-8")
        return cells.read(path)


class Cells(unittest.TestCase):
    def test_a_cell_is_read_in_seconds(self):
        self.assertEqual(read("x,2.28,alltoall,4,1024,3.5", "x,2.28,no_call,4,none,none"),
                         [cells.Cell("x", "NCCL 2.28", "nccl_all_to_all", 4, 1024, 3.5e-6)])

    def test_odd_numbers_are_refused_with_line_and_column(self):
        good = "x,2.28,all_gather,2,1024,5"
        for column, odd in (("microseconds", ("nan", "0", "inf", "-3", "4k", "", "1e99")),
                            ("total_bytes", ("0", "-8", "1.5", "4k", "1" + 26 * "0")), ("gpus", ("0", "-2", "x", "9999999"))):
            place = HEAD.splitlines()[1].split(",").index(column)
            for value in odd:
                words = good.split(",")
                words[place] = value
                with self.subTest(column=column, value=value), self.assertRaisesRegex(
                        ResultsError, rf"c\.csv:5: {column}: expected a (whole )?number above 0, at most .*, found \"{value}\"$"):
                    read(good, ",".join(words))

    def test_a_file_of_other_calls_says_which_are_known(self):
        with self.assertRaisesRegex(ResultsError, "no cells of a call that is known: all_gather, "):
            cells.of_system(read("x,2.28,no_call,4,8,1"), "x", [2, 4])


if __name__ == "__main__":
    unittest.main()
