# SPDX-License-Identifier: Apache-2.0
"""The findings say what the records say, with their intervals, and nothing where a record is missing."""

import unittest

from baton.paper import findings
from baton.paper.sources import MANY_H100, Sources
from baton.report.sessions import Session
from plots.example import layer, local, on_gpus, read, record
from plots.paper.shown import simulated

MIB = 2**20
SHAPE = {"tokens": 16384, "heads": 16, "dtype": "bf16", "executor": "peer", "device": {"gpu": "Example GPU"}}


def sources(measured=(), simulated=()):
    return Sources(list(simulated), {"mine": list(measured)}, {}, sessions={"mine": [Session("s", "mine", read(measured))]})


def launched(made, *factors):
    """These records once for each launch, whose times are these many times as long."""
    return [{**one, "run": f"r{number}", "launch": number, "seconds": [factor * second for second in one["seconds"]]}
            for number, factor in enumerate(factors, 1) for one in made]


def many(name, ranks, milliseconds):
    return simulated(name, ranks, milliseconds, MANY_H100)


class Exchange(unittest.TestCase):
    def found(self, *lasp2_microseconds):
        gather = [on_gpus("nccl_all_gather_scan", "nccl", microseconds=time, run=f"r{launch}", launch=launch)
                  for launch, time in enumerate(lasp2_microseconds, 1)]
        return findings.exchange(sources([*launched([on_gpus()], *[1] * len(gather)), *gather]))

    def test_time_bound_and_ratio(self):
        found = self.found(33, 33.1, 32.9)
        self.assertEqual(found.sentence,
                         "On 4 × Example GPU All-Scan hands on 2 MiB of state in 10.0 µs, at 91 % of its bound.")
        self.assertIn("LASP-2 by one ncclAllGather takes 3.30 [3.28, 3.32] times as long. Measured in 3 launches.", found.detail)

    def test_one_launch_tells_no_winner(self):
        self.assertIn("LASP-2 by one ncclAllGather takes 3.30 times as long. Measured in 1 launch, which tells no winner.",
                      self.found(33).detail)

    def test_the_most_gpus_count_first(self):
        made = [*launched([on_gpus(ranks=2)], 1, 1, 1), on_gpus(ranks=8, launch=4)]
        self.assertIn("On 8 ×", findings.exchange(sources([*made, *(one | {"name": "all_scan"} for one in made)])).sentence)

    def test_without_a_bound_there_is_no_share(self):
        made = [on_gpus(bound_seconds=None), on_gpus("all_scan", bound_seconds=None)]
        self.assertTrue(findings.exchange(sources(made)).sentence.endswith("in 10.0 µs."))

    def test_ranks_that_share_a_gpu_tell_nothing(self):
        made = [on_gpus(name, ranks_per_gpu=4) for name in ("all_scan_fused", "all_scan")]
        self.assertIsNone(findings.exchange(sources(made)))

    def test_processors_tell_nothing_of_gpus(self):
        self.assertIsNone(findings.exchange(sources([record(), record("ring_scan")])))


class Layer(unittest.TestCase):
    @staticmethod
    def layers(zeco, lasp1, lasp2):
        times = {"zeco": zeco, "lasp1": lasp1, "lasp2": lasp2}
        return [local(milliseconds=1, **SHAPE), *(layer(name, milliseconds=time, **SHAPE) for name, time in times.items())]

    def found(self, *times):
        return findings.layer(sources(launched(self.layers(*times), 1, 1.1, 0.9)))

    def test_the_overhead_of_each_the_least_first(self):
        found = self.found(1.06, 1.03, 1.12)
        self.assertEqual(found.sentence, "A whole layer on 4 × Example GPU takes 3.0 % longer with LASP-1, 6.0 % with ZeCO "
                                         "and 12.0 % with LASP-2 than without an exchange.")
        self.assertIn("Over that layer: LASP-1 1.030 [1.027, 1.033] times, ZeCO", found.detail)

    def test_one_session_must_have_them_all(self):
        self.assertIsNone(findings.layer(sources(self.layers(1.04, 1.02, 1.08)[:-1])))


class Simulations(unittest.TestCase):
    def test_the_fastest_on_many_ranks_and_from_where(self):
        chain = [many("all_scan", ranks, time) for ranks, time in ((8, 1), (16, 2), (256, 8), (512, 9))]
        slices = [many("two_shot", ranks, time) for ranks, time in ((8, 2), (16, 1), (256, 2), (512, 3))]
        found = findings.many_ranks(sources((), [*chain, *slices]))
        self.assertIn("On 256 simulated GPUs `two_shot`, which is in no paper, is the fastest: 2.00 ms", found.sentence)
        self.assertIn("All-Scan 4 times that", found.sentence)
        self.assertIn("It is ahead of all others from 16 to 512 ranks.", found.detail)
        level = [many("ring_scan", ranks, 1.001) for ranks in (16, 256, 512)]
        found = findings.many_ranks(sources((), [many("two_shot", ranks, 1) for ranks in (16, 256, 512)] + level))
        self.assertIn("It is ahead of the next by less than 23 %, the typical error of predictions.", found.detail)
        self.assertIsNone(findings.many_ranks(sources((), chain)))

    def test_how_far_predictions_were_off(self):
        found = findings.trust(sources([record(predicted_seconds=1.1e-3), record(ranks=2, predicted_seconds=2e-3)]))
        self.assertIn("typically 48 % off what was then measured, and at worst 100 %", found.sentence)
        self.assertIn("2 rows of mine by mpi", found.detail)
        self.assertIsNone(findings.trust(sources([record()])))

    def test_without_records_there_is_no_finding(self):
        self.assertEqual(list(findings.findings_of(sources())), [])


if __name__ == "__main__":
    unittest.main()
