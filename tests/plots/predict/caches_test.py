# SPDX-License-Identifier: Apache-2.0
"""Fitting the cache of a host: the search, the halves, and the command as a user runs it."""

import json
import math
import pathlib
import unittest
from unittest import mock

from baton.checks import ResultsError
from baton.predict import caches
from plots.example import BENCHES, ROOT, InFolder, record, run, write

SHIPPED = ROOT / "topologies/xeon-16.json"
PROGRAMS = next((pathlib.Path(path).parent for path in BENCHES.values()), pathlib.Path("/nowhere"))


class OfRows(InFolder):
    """200 made-up rows: five rank counts, four sizes and ten exchanges."""

    def setUp(self):
        super().setUp()
        self.records = write(self.folder / "rows.jsonl", [
            record(f"scan_{number}", ranks, state_bytes=2**power) for number in range(10) for ranks in (2, 3, 4, 8, 16)
            for power in (16, 18, 20, 22)])

    def rows(self):
        return caches.Rows(self.records, json.loads(SHIPPED.read_text(encoding="utf-8")), PROGRAMS)


class Search(unittest.TestCase):
    def test_it_ends_near_the_least_error(self):
        found = caches.search(lambda asked: abs(math.log(asked[0] / 170)) + abs(asked[1] - 0.6))
        self.assertAlmostEqual(found[0] / 170, 1, delta=0.1)
        self.assertAlmostEqual(found[1], 0.6, delta=0.06)

    def test_a_slowdown_is_never_negative(self):
        self.assertEqual(caches.search(lambda asked: abs(math.log(asked[0] / 256)) + asked[1])[1], 0)


class Halves(OfRows):
    def test_no_row_is_in_both_and_neighbours_are_in_different_ones(self):
        fitted, judged = (set(map(self.place, half)) for half in self.rows().halves)
        self.assertEqual((len(fitted), len(judged), fitted & judged), (100, 100, set()))
        for half in (fitted, judged):
            for index, axis in enumerate(caches.AXES):
                self.assertEqual(len({place[index] for place in half}), len({place[index] for place in fitted | judged}), axis)
        first = next(iter(fitted))
        self.assertEqual(((first[0], first[1] * 4, first[2]) in judged) or ((first[0], first[1] // 4, first[2]) in judged), True)

    def test_rows_of_schedules_that_have_changed_are_left_out(self):
        def simulated(*words):
            return [{**row, "median_seconds": 2 * row["median_seconds"], "sent_bytes": row["sent_bytes"] + changed}
                    for changed, row in zip((0, 4), known)]

        found = self.rows()
        known = found.halves[1][:2]
        found.halves = [], known
        with mock.patch.object(caches, "pairs", lambda rows, *_: zip(rows, simulated())):
            errors = found.errors((100, 1), 1)
        self.assertEqual(errors.rows, 1)
        self.assertAlmostEqual(errors.typical, 1)

    def test_records_without_such_rows_are_reported(self):
        with self.assertRaisesRegex(ResultsError, "found 0 rows"):
            caches.Rows(ROOT / "results/h200-4/predicted-nccl.jsonl", {}, PROGRAMS)

    @staticmethod
    def place(row):
        return tuple(row[axis] for axis in caches.AXES)


class Command(OfRows):
    def test_bad_input_is_answered_in_one_line(self):
        for words, said in ((("--fit-cache", self.folder / "none.jsonl"), "none.jsonl"),
                            (("--fit-cache", self.records, "--programs", self.folder), "cannot run"),
                            (("--fit-cache", self.records, "--fit", self.records, "--system", "b200_sxm"), "two questions")):
            with self.subTest(said):
                self.assert_one_line(run("predict", "--topology", SHIPPED, "--out", self.folder / "out.json", *words), said)
        self.assertFalse((self.folder / "out.json").exists())


if __name__ == "__main__":
    unittest.main()
