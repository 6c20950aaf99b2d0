# SPDX-License-Identifier: Apache-2.0
"""The figure is drawn from the records alone, in both formats."""

import unittest

from plots.example import InFolder, record, skipped


class TimeAgainstRanks(InFolder):
    def draw(self, records, *arguments):
        return self.figure_of(records, "ranks", *arguments)

    def test_draws_both_formats_and_the_same_file_again(self):
        names = ("all_scan", "ring_scan")
        records = [record(name, ranks, milliseconds=ranks) for name in names for ranks in (2, 4)]
        self.assert_draws_the_same("time_against_ranks", lambda: self.draw(records))

    def test_says_so_when_there_is_nothing_to_draw(self):
        self.assert_one_line(self.draw([skipped("no room"), record(wrong=1, ranks=2)]), "no timed record")

    def test_methods_at_one_rank_count_make_no_line(self):
        from baton.figures import ranks
        swept = [record(ranks=2), record(ranks=4)]
        lines = ranks.lines_by_method([*swept, record("ring_scan", ranks=4)], None)
        self.assertEqual(lines, {"all_scan": swept})

    def test_the_papers_methods_and_the_fastest_find_room(self):
        from baton.figures import ranks
        names = ["all_scan", *(f"scan_{number}" for number in range(10))]
        lines = {name: [record(name, 2), record(name, 4, milliseconds=10 - number)] for number, name in enumerate(names)}
        drawn = ranks.room_for(lines)
        self.assertEqual(list(drawn), ["all_scan", *names[4:]])
        self.assertIn("8 of 11 methods", ranks.subtitle([record()], lines))

    def svg(self, records, *arguments):
        done = self.draw(records, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "time_against_ranks.svg").read_text(encoding="utf-8")

    def test_what_is_simulated_takes_no_place_of_what_is_measured(self):
        measured = [record(ranks=ranks) for ranks in (2, 4)]
        simulated = [record(name, ranks, executor="simulator", topology="far") for ranks in (2, 4, 8, 16)
                     for name in ("all_scan", "ring_scan")]
        drawn = self.svg([*measured, *simulated])
        self.assertNotIn("simulated", drawn)
        self.assertIn("simulated: far", self.svg(simulated))
        self.assertIn("simulated: far", self.svg([*measured, *simulated], "--executor", "simulator"))

    def test_launches_and_changed_trees_are_told(self):
        drawn = self.svg([record(ranks=2), record(ranks=4), record(ranks=8, run="b", commit="abc-dirty")])
        self.assertIn("filled marks: launch a, commit abc; a: launch b, commit abc-dirty", drawn)

    def test_crowded_cores_are_told(self):
        drawn = self.svg([record(ranks=2), record(ranks=4, conditions={"oversubscribed": True})])
        self.assertIn("oversubscribed, so no measure of the exchange: 4 ranks", drawn)


if __name__ == "__main__":
    unittest.main()
