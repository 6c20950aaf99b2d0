# SPDX-License-Identifier: Apache-2.0
"""Exchanges are compared within one launch, and what is of another is marked."""

import unittest

from baton import exchanges
from plots.example import on_gpus, skipped

MIB = 2**20


class Sweeps(unittest.TestCase):
    def sweep(self, *records):
        return exchanges.sweeps(records)[4, "isolated"]

    def test_each_number_of_ranks_and_cadence_is_a_sweep(self):
        found = exchanges.sweeps([on_gpus(), on_gpus(ranks=2), on_gpus(cadence="graph"), on_gpus(ranks=1),
                                    on_gpus(direction="reverse"), on_gpus(kind="all_gather"), skipped("no")])
        self.assertEqual(list(found), [(2, "isolated"), (4, "graph"), (4, "isolated")])

    def test_a_name_on_another_executor_is_another_method(self):
        sweep = self.sweep(on_gpus("all_scan", "nccl"), on_gpus("all_scan"), on_gpus(executor="peer_bf16"),
                               on_gpus())
        self.assertEqual(sweep.methods(), [exchanges.FUSED, exchanges.INTERPRETED, exchanges.NARROW,
                                             exchanges.Method("all_scan", "nccl")])

    def test_the_launch_with_most_points_stands_before_a_newer_one(self):
        full = [on_gpus(size=size, microseconds=1) for size in (MIB, 2 * MIB, 8 * MIB)]
        newer = {"run": "b", "time": "2030-01-02T00:00:00Z"}
        sweep = self.sweep(*full, on_gpus(size=MIB, microseconds=2, **newer), on_gpus(size=4 * MIB, **newer))
        self.assertEqual(sweep.at(exchanges.FUSED, MIB), full[0])
        self.assertEqual(sweep.elsewhere(full[0]), "")
        self.assertEqual(sweep.elsewhere(full[0], sweep.at(exchanges.FUSED, 4 * MIB)), "*")

    def test_of_two_launches_alike_the_newer_stands(self):
        old, new = on_gpus(), on_gpus(run="b", time="2030-01-02T00:00:00Z")
        self.assertEqual(self.sweep(new, old).at(exchanges.FUSED, 2 * MIB), new)

    def test_the_models_blocks_stand_before_the_fastest(self):
        swept = [on_gpus(blocks=blocks, blocks_asked=blocks, microseconds=blocks) for blocks in (4, 2, 8)]
        self.assertEqual(self.sweep(*swept).at(exchanges.FUSED, 2 * MIB)["blocks"], 2)
        chosen = on_gpus(blocks=9, blocks_asked="auto", microseconds=9)
        self.assertEqual(self.sweep(chosen, *swept).at(exchanges.FUSED, 2 * MIB)["blocks"], 9)


if __name__ == "__main__":
    unittest.main()
