# SPDX-License-Identifier: Apache-2.0
"""Compact records are what was given, whatever stands in them, and take little memory."""

import json
import random
import tracemalloc
import unittest

from baton import cases, results
from baton.reading.compact import Compact
from plots.example import InFolder, layer, model, on_gpus, read, record, skipped, write

ODD = (None, True, False, 0, 1, -1, 2**62, 2**70, 0.0, 1.5, "", "x", [], [1], [1, 2], [1, 2.0], [0.5], [True], [[0.5], [1.5]], [[0.5], [1]],
       [[], []], [[0.5]], [[0.5], [0.5, 1.5]], ["a"], {}, {"q": 1}, {"q": 2}, {"q": [0.5]}, {"d": {"o": 1}}, [2**70], [{}])


def exact(record):
    """As JSON, which tells 1 from 1.0 and from true."""
    return json.dumps(record)


class Records(unittest.TestCase):
    def assert_kept(self, records):
        compact = Compact()
        kept = [compact.add(one) for one in records]
        for one, found in zip(records, kept):
            self.assertEqual(exact(dict(found)), exact(one))
            self.assertEqual((found, len(found), list(found)), (one, len(one), list(one)))
            for key in (*one, "nothing"):
                self.assertEqual((key in found, found.get(key, "none")), (key in one, one.get(key, "none")))
            self.assertRaises(KeyError, lambda kept=found: kept["nothing"])

    def test_of_the_benches(self):
        made = [record(), record(milliseconds=2.0), layer(), model(), on_gpus(), on_gpus(ranks=2), skipped("too few"), record()]
        self.assert_kept([*made, *read(made)])

    def test_with_any_value_after_any_other(self):
        for before in ODD:
            self.assert_kept([{"a": before, "b": 1}] + [{"a": after, "b": 1} for after in ODD])

    def test_drawn_at_random(self):
        drawn = random.Random(5)
        self.assert_kept([{key: drawn.choice(ODD) for key in drawn.sample("abcd", 3)} for _ in range(2000)])


class Memory(InFolder):
    def test_of_many_launches_is_less_than_their_file(self):
        made = [{**one, "case": "one", "launch": launch + 1, "seconds": [1e-3 + launch * 1e-9] * 20, "rank_seconds": [[1e-3 + launch * 1e-9] * 20] * 2}
                for launch, one in enumerate(read([record()] * 4000))]
        path = write(self.folder / "r.jsonl", made)
        tracemalloc.start()
        found = cases.side_of(results.load([path]), path)
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        self.assertEqual(len(found.cases["one"].launches), 4000)
        self.assertLess(kept, 0.6 * path.stat().st_size)


if __name__ == "__main__":
    unittest.main()
