# SPDX-License-Identifier: Apache-2.0
"""The findings say what the records say: no difference where intervals touch, and nothing where a record is missing."""

import unittest

from baton.paper import findings
from baton.paper.sources import Sources
from plots.example import layer, local, on_gpus, record

MIB = 2**20
H100, MANY = "dgx-h100-32x8", "dgx-h100-2048x8"
SHAPE = {"tokens": 16384, "heads": 16, "dtype": "bf16", "executor": "peer", "device": {"gpu": "Example GPU"}}


def sources(measured=(), simulated=(), published=()):
    return Sources(list(simulated), {"mine": list(measured)}, {"zeco_table2": list(published)})


def simulated(name, ranks, milliseconds, topology=H100):
    return record(name, ranks, milliseconds, executor="simulator", topology=topology, messages=1, blocks_asked=1)


def cell(method, gpus, value):
    return {"method": method, "gpus": str(gpus), "value": str(value), "unit": "ms", "source": "made up"}


class Exchange(unittest.TestCase):
    def found(self, lasp2_microseconds, **changes):
        gather = on_gpus("nccl_all_gather_scan", "nccl", microseconds=lasp2_microseconds, **changes)
        return findings.exchange(sources([on_gpus(), gather]))

    def test_time_bound_and_ratio(self):
        found = self.found(33)
        self.assertEqual(found.sentence,
                         "On 4 × Example GPU All-Scan hands on 2 MiB of state in 10.0 µs, at 91 % of its bound.")
        self.assertIn("LASP-2 by one ncclAllGather takes 3.3 times as long. Measured, medians of one launch", found.detail)

    def test_touching_intervals_are_no_difference(self):
        self.assertIn("takes a time that cannot be told apart", self.found(11).detail)

    def test_another_launch_is_no_rival(self):
        found = self.found(33, run="b")
        self.assertNotIn("LASP-2", found.detail)
        self.assertEqual([line.label for line in found.figure.data], ["All-Scan", "bound of All-Scan"])

    def test_several_launches_are_counted(self):
        self.assertIn("medians of 3 launches.", findings.exchange(sources([on_gpus(launches=3)])).detail)

    def test_without_a_bound_there_is_no_share(self):
        self.assertTrue(findings.exchange(sources([on_gpus(bound_seconds=None)])).sentence.endswith("in 10.0 µs."))

    def test_ranks_that_share_a_gpu_tell_nothing(self):
        self.assertIsNone(findings.exchange(sources([on_gpus(ranks_per_gpu=4)])))

    def test_processors_tell_nothing_of_gpus(self):
        self.assertIsNone(findings.exchange(sources([record()])))


class Layer(unittest.TestCase):
    @staticmethod
    def layers(zeco, lasp1, lasp2, half=0.001, **changes):
        times = {"zeco": zeco, "lasp1": lasp1, "lasp2": lasp2}

        def ends(time):
            return {"ci95_seconds": [(time - half) / 1e3, (time + half) / 1e3]}

        return [local(milliseconds=1, **ends(1), **SHAPE),
                *(layer(name, milliseconds=time, **ends(time), **{**SHAPE, **changes}) for name, time in times.items())]

    def test_the_overhead_of_each_the_least_first(self):
        found = findings.layer(sources(self.layers(1.04, 1.02, 1.08)))
        self.assertEqual(found.sentence, "A whole layer on 4 × Example GPU takes 2.0 % longer with LASP-1, 4.0 % with ZeCO "
                                         "and 8.0 % with LASP-2 than without an exchange.")
        self.assertIn("The methods are 6.0 % of a layer apart.", found.detail)
        self.assertNotIn("told apart", found.detail)

    def test_what_cannot_be_told_apart_is_said(self):
        found = findings.layer(sources(self.layers(1.020, 1.021, 1.08)))
        self.assertIn("ZeCO and LASP-1 cannot be told apart.", found.detail)

    def test_what_may_be_nothing_is_said(self):
        found = findings.layer(sources(self.layers(1.0005, 1.02, 1.08)))
        self.assertIn("What ZeCO adds cannot be told from nothing.", found.detail)

    def test_one_launch_must_have_them_all(self):
        self.assertIsNone(findings.layer(sources(self.layers(1.04, 1.02, 1.08, run="b"))))


class Simulations(unittest.TestCase):
    def test_published_beside_simulated(self):
        rows = [cell("AllGather (LASP-2)", 256, 8), cell("All-Scan (ZeCO)", 256, 2)]
        found = findings.published(sources((), [simulated("ring_all_gather", 256, 9), simulated("all_scan", 256, 1)], rows))
        self.assertIn("On 256 GPUs ZeCO's paper has LASP-2's all-gather at 4.0 times All-Scan's time", found.sentence)
        self.assertIn("make it 9.0 times in simulation", found.sentence)
        self.assertIn("published 8.00 and 2.00 ms and simulated 9.00 and 1.00 ms", found.detail)
        self.assertIsNone(findings.published(sources((), [simulated("all_scan", 256, 1)], rows)))

    def test_the_fastest_on_many_ranks_and_from_where(self):
        chain = [simulated("all_scan", ranks, time, MANY) for ranks, time in ((8, 1), (16, 2), (256, 8), (512, 9))]
        slices = [simulated("two_shot", ranks, time, MANY) for ranks, time in ((8, 2), (16, 1), (256, 2), (512, 3))]
        found = findings.many_ranks(sources((), [*chain, *slices]))
        self.assertIn("On 256 simulated GPUs `two_shot`, which is in no paper, is the fastest: 2.00 ms", found.sentence)
        self.assertIn("All-Scan 4 times that", found.sentence)
        self.assertIn("It is ahead of all others from 16 to 512 ranks.", found.detail)
        level = [simulated("ring_scan", ranks, 1.001, MANY) for ranks in (16, 256, 512)]
        found = findings.many_ranks(sources((), [simulated("two_shot", ranks, 1, MANY) for ranks in (16, 256, 512)] + level))
        self.assertIn("It is ahead of the next by less than 1 %.", found.detail)
        self.assertIsNone(findings.many_ranks(sources((), chain)))

    def test_how_far_predictions_were_off(self):
        found = findings.trust(sources([record(predicted_seconds=1.1e-3), record(ranks=2, predicted_seconds=2e-3)]))
        self.assertIn("typically 48 % off what was then measured, and at worst 100 %", found.sentence)
        self.assertIn("2 rows of mine by mpi", found.detail)
        self.assertIsNone(findings.trust(sources([record()])))

    def test_without_records_there_is_no_finding(self):
        self.assertEqual(list(findings.of(sources())), [])


if __name__ == "__main__":
    unittest.main()
