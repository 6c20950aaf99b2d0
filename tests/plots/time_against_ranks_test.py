# SPDX-License-Identifier: Apache-2.0
"""The figure is drawn from the records alone, in both formats."""

import unittest

from plots.example import InFolder, draws, record, skipped


@draws
class TimeAgainstRanks(InFolder):
    def draw(self, records, *arguments):
        return self.run_on(records, "time_against_ranks.py", *arguments)

    def test_draws_both_formats_and_the_same_file_again(self):
        names = ("all_scan", "ring_scan")
        records = [record(name, ranks, milliseconds=ranks) for name in names for ranks in (2, 4)]
        self.assert_draws_the_same("time_against_ranks", lambda: self.draw(records))

    def test_says_so_when_there_is_nothing_to_draw(self):
        self.assert_one_line(self.draw([skipped("no room"), record(wrong=1, ranks=2)]), "no timed record")

    def test_methods_at_one_rank_count_make_no_line(self):
        import time_against_ranks
        swept = [record(ranks=2), record(ranks=4)]
        lines = time_against_ranks.lines_by_method([*swept, record("ring_scan", ranks=4)], None)
        self.assertEqual(lines, {"all_scan": swept})


if __name__ == "__main__":
    unittest.main()
