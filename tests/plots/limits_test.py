# SPDX-License-Identifier: Apache-2.0
"""What the data sheet of a GPU allows: by memory, by the tensor cores, or unknown."""

import unittest

from baton import limits

LAYER = {"bench": "operator", "dtype": "bf16", "device": {"gpu": "NVIDIA H100 80GB HBM3"}, "tokens": 1000, "ranks": 2,
         "flops_per_token": 989e6, "flops_per_pair": 0, "tensor_bytes": 3.35e9}


class Limits(unittest.TestCase):
    def test_the_slower_of_memory_and_tensor_cores_limits_a_layer(self):
        self.assertEqual(limits.of({**LAYER, "flops_per_token": 100e6}), (1e-3, "bandwidth"))
        self.assertEqual(limits.of({**LAYER, "tensor_bytes": 3.35e9 / 2}), (1e-3, "FLOP/s"))

    def test_softmax_has_operations_for_each_token_of_all_ranks(self):
        self.assertAlmostEqual(limits.of({**LAYER, "flops_per_token": 0, "flops_per_pair": 989e3}).seconds, 2e-3)

    def test_a_model_is_limited_by_its_operations_at_the_peak_that_the_user_said(self):
        model = {**LAYER, "bench": "model", "peak_flops": 989e11}
        self.assertEqual(limits.of(model), (1e-2, "FLOP/s"))
        self.assertEqual(limits.of({**model, "device": None, "dtype": "f32"}), (1e-2, "FLOP/s"))

    def test_nothing_is_said_of_unknown_gpus_other_types_and_old_records(self):
        for changed in ({"device": {"gpu": "Example GPU"}}, {"device": None}, {"dtype": "f32"}):
            self.assertIsNone(limits.of({**LAYER, **changed}))
        self.assertIsNone(limits.of({key: value for key, value in LAYER.items() if key != "flops_per_token"}))


if __name__ == "__main__":
    unittest.main()
