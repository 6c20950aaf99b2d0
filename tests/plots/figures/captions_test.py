# SPDX-License-Identifier: Apache-2.0
"""What captions say of records."""

import unittest

from baton import words
from baton.figures import captions
from plots.example import layer, read, record


class Captions(unittest.TestCase):
    def test_rank_counts_that_measure_no_exchange_are_named(self):
        busy = {"conditions": {"oversubscribed": True}}
        self.assertEqual(captions.crowded_ranks([record(ranks=2), record(ranks=8, **busy), record(ranks=4, **busy)]),
                         "oversubscribed, so no measure of the exchange: 4, 8 ranks")
        self.assertEqual(captions.crowded_ranks([record(conditions={"oversubscribed": False})]), "")

    def test_a_setting_begins_with_its_machine(self):
        machine, what, shape, cadence = captions.describe(record(machine={"cpu": "Some CPU", "cores": 8}))
        self.assertEqual((machine, cadence), ("Some CPU, 8 cores", "isolated rounds"))
        self.assertIn("executor mpi", what)
        self.assertIn("of state a rank", shape)

    def test_a_simulated_row_has_the_machine_of_its_topology(self):
        simulated = record(executor="simulator", topology="somewhere")
        self.assertTrue(captions.describe(simulated)[0].startswith("simulated: somewhere"))
        self.assertEqual(captions.kind_word([simulated]), "simulated")
        self.assertEqual(captions.kind_word([record()]), "measured")

    def test_blocks_by_a_library_are_named(self):
        by_cudnn, = read([layer(kernel="cudnn", kernel_version="9.19.0")])
        self.assertIn("blocks by cudnn 9.19.0", captions.describe(by_cudnn))

    def test_sizes_are_binary(self):
        self.assertEqual([words.binary_size(size) for size in (512, 65536, 2 << 20, 3 << 29)],
                         ["512 B", "64 KiB", "2 MiB", "1.5 GiB"])


if __name__ == "__main__":
    unittest.main()
