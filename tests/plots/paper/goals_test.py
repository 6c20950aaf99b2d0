# SPDX-License-Identifier: Apache-2.0
"""A goal is compared with the worst of the sizes it is for, and what falls short says why."""

import unittest

from baton import exchanges
from baton.paper import goals
from baton.paper.page import Table, Text
from plots.example import on_gpus

KIB, MIB = 2**10, 2**20


def page(*records):
    """The rows {(figure, where): [goal, here, held]} and the paragraphs."""
    blocks = list(goals.blocks("mine", exchanges.sweeps(records)[4, "isolated"]))
    rows, label = {}, ""
    for row in next(block for block in blocks if isinstance(block, Table)).rows:
        label = row.label or label
        rows[label, row.kind] = [cell and cell.text for cell in row.cells]
    return rows, [block.markdown for block in blocks if isinstance(block, Text)]


def lasp2(size, microseconds, **changes):
    return on_gpus("nccl_all_gather_scan", "nccl", size, microseconds, **changes)


class Goals(unittest.TestCase):
    title = "LASP-2 by one plain ncclAllGather over All-Scan"

    def test_held(self):
        rows, short = page(on_gpus(microseconds=10), lasp2(2 * MIB, 34))
        self.assertEqual(rows[self.title, "2 MiB"], ["at least 3.40", "3.40", "yes"])
        self.assertFalse([text for text in short if self.title in text])

    def test_short_of_it_says_what_the_bound_allows(self):
        rows, short = page(on_gpus(microseconds=10), lasp2(2 * MIB, 33))
        self.assertEqual(rows[self.title, "2 MiB"], ["at least 3.40", "3.30", "no"])
        text, = [one for one in short if self.title in one]  # once, though two lines are not held
        self.assertIn("its bound being 9.10 µs: on the bound itself the ratio would be 3.63.", text)
        self.assertIn("without it the ratio is 4.83", text)

    def test_of_a_range_the_worst_counts_and_says_where(self):
        sizes = {MIB: 50, 4 * MIB: 40, 16 * MIB: 60}
        rows, _ = page(*(on_gpus(size=size, microseconds=10) for size in sizes),
                       *(lasp2(size, time) for size, time in sizes.items()), lasp2(512 * KIB, 1))
        self.assertEqual(rows[self.title, "1 MiB to 16 MiB, worst at 4 MiB"], ["at least 3.40", "4.00", "yes"])

    def test_a_missing_record_is_a_blank(self):
        rows, short = page(on_gpus(microseconds=9.5))
        self.assertEqual(rows[self.title, "2 MiB"], ["at least 3.40", None, None])
        self.assertEqual(rows["All-Scan over its bound", "2 MiB"], ["at most 1.08", "1.04", "yes"])
        self.assertEqual(short, [])

    def test_the_parts_of_a_bound_that_is_missed(self):
        _, (text, *_) = page(on_gpus(microseconds=20))
        for said in ("20.0 µs, of which the empty round is 4.00 µs", "3 flags are 3.00 µs",
                     "on one link is 2.10 µs", "10.9 µs are the kernel's own"):
            self.assertIn(said, text)

    def test_the_fastest_form_of_a_gather_is_taken(self):
        rows, _ = page(on_gpus(microseconds=10), lasp2(2 * MIB, 40),
                       on_gpus("all_gather_scan_direct", "nccl", microseconds=30))
        self.assertEqual(rows["LASP-2 by the fastest form on NCCL over All-Scan", "2 MiB"][1], "3.00")

    def test_another_launch_is_marked(self):
        rows, _ = page(on_gpus(), on_gpus(size=MIB), lasp2(2 * MIB, 40, run="b"))
        self.assertEqual(rows[self.title, "2 MiB"][1], "4.00*")


if __name__ == "__main__":
    unittest.main()
