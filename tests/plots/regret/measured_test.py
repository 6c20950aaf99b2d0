# SPDX-License-Identifier: Apache-2.0
"""What is kept of measured contests follows from the records, and from what the simulator says of them today."""

import os
import pathlib
import unittest

from baton.regret import contests, measured
from plots.example import BENCHES

KEPT = contests.read()
ANEW = "contests.csv is no longer what `python3 -m baton regret --programs build/cpu/bin` makes"


def kept(source):
    return [one for one in KEPT if (one.source, one.topology) == (source.folder, pathlib.Path(source.topology).stem)]


class Records(unittest.TestCase):
    def test_each_time_is_that_of_the_records(self):
        for source in measured.SOURCES:
            for one, (contest, executor, rows) in zip(kept(source), measured.contests(source), strict=True):
                with self.subTest(one.contest):
                    times = measured.measured(contest, executor, rows)
                    of_kept = (measured.name(contest, executor), len(times), times[one.named] / min(times.values()))
                    self.assertEqual(of_kept[:2], (one.contest, one.rows), ANEW)
                    self.assertAlmostEqual(of_kept[2], one.times, places=4, msg=ANEW)

    def test_no_topology_was_made_of_the_exchanges_that_it_judges(self):
        for source in measured.SOURCES:
            text = (measured.TREE / source.topology).read_text(encoding="utf-8")
            if f"results/{source.folder}" in text:
                self.assertNotIn(measured.COLLECTIVE, source.benches, source)
            if "calibration" in source.topology:
                self.assertEqual(source.origin, contests.CALIBRATED, source)

    def test_natives_and_layers_without_an_exchange_do_not_compete(self):
        rows = [row for source in measured.SOURCES for _, _, found in measured.contests(source) for row in found]
        self.assertFalse({row.name.name for row in rows} & {"local", "nccl_all_gather_scan", "all_scan_fused"})
        self.assertGreater(len(rows), 500)


@unittest.skipUnless(BENCHES, "no benches")
class Benches(unittest.TestCase):
    def test_the_simulator_names_the_same_rows_today(self):
        source = measured.SOURCES[-1]
        today = measured.of_source(source, os.path.dirname(next(iter(BENCHES.values()))))
        self.assertEqual(contests.as_text([], today), contests.as_text([], kept(source)), ANEW)


if __name__ == "__main__":
    unittest.main()
