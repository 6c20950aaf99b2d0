# SPDX-License-Identifier: Apache-2.0
"""Kept records are what was given, whatever stands in them, and take little memory."""

import json
import random
import tracemalloc
import unittest

from baton import results
from baton.kept import Records
from plots.example import InFolder, layer, model, on_gpus, read, record, skipped, write

ODD = (None, True, False, 0, 1, 2**70, 0.0, 1.0, "", "x", [], [1], [1, 2.0], [0.5], [True], [[0.5], [1]], [[], []], [[0.5], [0.5, 1.5]], ["a"],
       {}, {"q": 1}, {"q": 1.0}, {"q": True}, {"q": [0.5]}, {"d": {"o": 1}}, [2**70], [{}])


class Kept(InFolder):
    def assert_kept(self, records):
        kept = Records()
        for one, found in [(one, kept.add(one)) for one in records]:
            self.assertEqual(json.dumps(dict(found)), json.dumps(one))  # JSON tells 1 from 1.0 and from true
            for key in (*one, "nothing"):
                self.assertEqual((key in found, found.get(key, "none")), (key in one, one.get(key, "none")))
            self.assertRaises(KeyError, lambda found=found: found["nothing"])

    def test_records_of_the_benches(self):
        made = [record(), record(milliseconds=2.0), layer(), model(), on_gpus(ranks=2), skipped("too few"), record()]
        self.assert_kept([*made, *read(made)])

    def test_any_values(self):
        drawn = random.Random(5)
        self.assert_kept([{key: drawn.choice(ODD) for key in drawn.sample("abcd", 3)} for _ in range(2000)])

    def test_many_launches_take_2_kb_each(self):
        path = write(self.folder / "r.jsonl", [{**one, "launch": launch + 1} for launch, one in enumerate(read([record()] * 4000))])
        tracemalloc.start()
        found = results.load([path])
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        self.assertLess(taken / len(found), 2048)


if __name__ == "__main__":
    unittest.main()
