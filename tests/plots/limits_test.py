# SPDX-License-Identifier: Apache-2.0
"""What the data sheet of a GPU allows: by memory, by the tensor cores, or unknown."""

import unittest

from baton import limits
from plots.example import model
from plots.report.example import answer_text, launches, scan, session, simulated
from plots.report.example import layer as gpu_layer

LAYER = {"bench": "operator", "dtype": "bf16", "device": {"gpu": "NVIDIA H100 80GB HBM3"}, "tokens": 1000, "ranks": 2,
         "flops_per_token": 989e6, "flops_per_pair": 0, "tensor_bytes": 3.35e9}


class Limits(unittest.TestCase):
    def test_the_slower_of_memory_and_tensor_cores_limits_a_layer(self):
        self.assertEqual(limits.least_time({**LAYER, "flops_per_token": 100e6}), (1e-3, "bandwidth"))
        self.assertEqual(limits.least_time({**LAYER, "tensor_bytes": 3.35e9 / 2}), (1e-3, "FLOP/s"))

    def test_softmax_has_operations_for_each_token_of_all_ranks(self):
        self.assertAlmostEqual(limits.least_time({**LAYER, "flops_per_token": 0, "flops_per_pair": 989e3}).seconds, 2e-3)

    def test_windows_and_documents_leave_fewer_pairs(self):
        some = {**LAYER, "flops_per_token": 0, "flops_per_pair": 989e3, "tensor_bytes": 0}
        self.assertAlmostEqual(limits.least_time({**some, "visible_pairs": 2000**2 / 2}).seconds, 2e-3)
        self.assertAlmostEqual(limits.least_time({**some, "visible_pairs": 2000.0}).seconds, 2e-6)

    def test_a_model_is_limited_by_its_operations_at_the_peak_that_the_user_said(self):
        model = {**LAYER, "bench": "model", "peak_flops": 989e11}
        self.assertEqual(limits.least_time(model), (1e-2, "FLOP/s"))
        self.assertEqual(limits.least_time({**model, "device": None, "dtype": "f32"}), (1e-2, "FLOP/s"))

    def test_nothing_is_said_of_unknown_gpus_other_types_and_old_records(self):
        for changed in ({"device": {"gpu": "Example GPU"}}, {"device": None}, {"dtype": "f32"}):
            self.assertIsNone(limits.least_time({**LAYER, **changed}))
        self.assertIsNone(limits.least_time({key: value for key, value in LAYER.items() if key != "flops_per_token"}))

    def test_local_work_pairs_no_token_with_those_of_other_ranks(self):
        alone = {**LAYER, "flops_per_token": 0, "flops_per_pair": 989e3, "tensor_bytes": 0}
        for changed in ({"mode": "compute_only"}, {"line": "split"}):
            self.assertAlmostEqual(limits.least_time({**alone, **changed}).seconds, 1e-3)


class Impossible(unittest.TestCase):
    @staticmethod
    def why(*launches):
        (comparison,) = session(*launches).comparisons
        return limits.why_impossible(comparison.competitors[0])

    def test_less_than_the_bound_by_more_than_its_error(self):
        self.assertEqual(self.why(scan(microseconds=80, bound_seconds=1e-4, factors=(1, 1.01, 0.99))),
                         "takes 80 % of its bound, less than the error of the bound allows, which cannot be: the link was "
                         "measured slower than it is")
        self.assertEqual(self.why(scan(microseconds=80, bound_seconds=1e-4, factors=(1, 1.5, 0.7))), "", "launches differ by more")
        self.assertEqual(self.why(scan(microseconds=99, bound_seconds=1e-4, factors=(1, 1.0, 1.0))), "", "within the margin")

    def test_one_launch_does_not_know_the_error(self):
        self.assertEqual(self.why(scan(microseconds=80, bound_seconds=1e-4, factors=(1,))), "")
        self.assertIn("cannot be", self.why(scan(microseconds=60, bound_seconds=1e-4, factors=(1,))))

    def test_the_bound_of_each_launch_stands_beside_its_time(self):
        """A launch in which all is slow makes both longer."""
        made = scan(microseconds=80, factors=(1, 2, 4))
        made = [{**one, "bound_seconds": 1.25 * one["median_seconds"]} for one in made]
        self.assertIn("takes 80 % of its bound", self.why(made))

    def test_more_than_all_of_a_peak(self):
        step = {"tokens": 256, "flops_per_token": 1e6, "peak_flops": 1e8, "machine": {"cpu": "c", "cores": 64, "host": "h"}}
        self.assertEqual(self.why(launches(model(milliseconds=22, **step))),
                         "takes 11637 % of the peak (FLOP/s), which cannot be: --peak is not that of this hardware")
        self.assertEqual(self.why(launches(model(milliseconds=2570, **step))), "", "all of it within the launches' spread")

    def test_a_layer_in_the_caches_is_faster_than_memory(self):
        gpu = {"dtype": "bf16", "flops_per_token": 1, "flops_per_pair": 0, "device": {"gpu": "NVIDIA H100 80GB HBM3"},
               "executor": "peer", "alpha_seconds": 1e-6, "beta_bytes_per_second": 1e12}
        self.assertEqual(self.why(gpu_layer(milliseconds=0.001, tensor_bytes=40 << 20, **gpu)), "")
        self.assertIn("of the peak (bandwidth), which cannot be", self.why(gpu_layer(milliseconds=0.1, tensor_bytes=1 << 30, **gpu)))

    def test_what_is_no_measure_of_a_link_is_left_alone(self):
        made = scan(microseconds=60, bound_seconds=1e-4)
        self.assertEqual(self.why(simulated(made)), "")

    def test_the_answer_names_it(self):
        text = answer_text(scan(microseconds=60, bound_seconds=1e-4), scan("two_shot", 70, bound_seconds=1e-4), scan("chain", 200))
        self.assertIn("all_scan (Exclusive scan, 2 MiB a rank, 4 ranks on processors) takes 60 % of its bound", text)
        self.assertIn("So does 1 more row.", text)


if __name__ == "__main__":
    unittest.main()
