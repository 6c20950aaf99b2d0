# SPDX-License-Identifier: Apache-2.0
"""An output of nccl-tests is read, and set beside our own call where as many bytes are gathered."""

import unittest

from baton.paper import nccl_tests
from baton.paper.page import Table, Text
from plots.example import ROOT, on_gpus

OUTPUT = """# nccl-tests version 9.9 nccl-headers=1 nccl-library=1
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
       65536          4096     float    none      -1     8.59    7.63    5.00    N/A     8.26    7.93    6.00    N/A
      131072          8192     float    none      -1     8.63   15.19   10.0    N/A     8.37   15.66   10.0    N/A
# Avg bus bandwidth    : 146.917
"""


def gathered(size, rate, **changes):
    """A record whose maps come to so many bytes on 4 ranks: a state of d_k x 127 and its decays."""
    return on_gpus("nccl_all_gather", "nccl", kind="all_gather", busbw_bytes_per_second=rate, **{
        "heads": 1, "d_k": size // 4 // 512, "d_v": 127, "state_bytes": size // 4 * 127 // 128, "cadence": "graph",
        **changes})


class NcclTests(unittest.TestCase):
    def blocks(self, *records):
        blocks = list(nccl_tests.blocks("mine", records, {"nccl-tests-graph": OUTPUT, "other": OUTPUT}))
        return ([block for block in blocks if isinstance(block, Table)],
                " ".join(block.markdown for block in blocks if isinstance(block, Text)))

    def test_reads_out_of_place(self):
        self.assertEqual(nccl_tests.tests(OUTPUT), {65536: 5e9, 131072: 10e9})
        self.assertEqual(nccl_tests.version(OUTPUT), "9.9")

    def test_the_same_bytes_stand_side_by_side(self):
        tables, _ = self.blocks(gathered(65536, 5.1e9), gathered(131072, 10e9), gathered(262144, 1e9))
        self.assertEqual(tables[0].columns, ["64 KiB", "128 KiB"])
        self.assertEqual([cell.text for cell in tables[0].rows[2].cells], ["1.02", "1.00"])

    def test_what_is_further_apart_is_marked(self):
        tables, _ = self.blocks(gathered(65536, 4e9), gathered(131072, 10e9),
                                   gathered(131072, 1e9, cadence="streaming"))
        self.assertEqual([cell.off for cell in tables[0].rows[2].cells], [True, False])

    def test_nothing_in_common_is_said(self):
        tables, text = self.blocks(gathered(262144, 1e9))
        self.assertEqual(tables, [])
        self.assertIn("has no size that a record of `nccl_all_gather` has too", text)

    def test_the_outputs_kept_are_read(self):
        for path in (ROOT / "results").glob("*/nccl-tests-*.txt"):
            self.assertTrue(nccl_tests.tests(path.read_text(encoding="utf-8")), path)


if __name__ == "__main__":
    unittest.main()
