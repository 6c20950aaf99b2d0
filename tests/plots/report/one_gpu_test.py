# SPDX-License-Identifier: Apache-2.0
"""What the answer says where one GPU measured layers alone, and what is simulated of more."""

import json
import unittest

from baton.report import one_gpu
from plots.example import ROOT
from plots.report.example import (
    crowded,
    layer,
    local,
    methods,
    paragraphs,
    scan,
    session,
    simulated,
    answer_text,
)


class OneGpu(unittest.TestCase):
    """A machine of one GPU: its layers and its model, and what is simulated of more."""

    on_gpu = dict(executor="nccl", ranks=1, device={"gpu": "NVIDIA H100 80GB HBM3"}, dtype="bf16", tokens=16384, heads=16)
    linear = dict(flops_per_token=3 * 4.0 * 16 * 128 * 128, flops_per_pair=0, tensor_bytes=335e6)

    def test_each_layer_stands_beside_what_the_data_sheet_allows_and_more_gpus_are_simulated(self):
        more = [simulated(layer(name, milliseconds, ranks=ranks, dtype="bf16")) for ranks in (2, 256)
                for name, milliseconds in (("zeco", 1.0), ("lasp2", 2.0))]
        softmax = [one for milliseconds, way, passes in ((7.0, "both", 3), (2.0, "forward", 1))
                   for one in layer("ring_attention_softmax", milliseconds, scan="", gate="none", attention="softmax",
                                    flops_per_token=0, flops_per_pair=passes * 256.0 * 16, **self.on_gpu, **{"pass": way})]
        found = paragraphs(local(1.05, **self.on_gpu, **self.linear), local(2.0, **self.on_gpu, attention="gdn"), softmax, *more)
        self.assertEqual(list(found), ["ANSWER", "One GPU", "~ Simulated", "Verified"])
        self.assertRegex(found["One GPU"], r"takes two GPUs: 16384 tokens, 16 heads of 128, bf16\. Training is forward and backward; percentages are of what the data sheet allows\.")
        self.assertRegex(found["One GPU"], r"Linear: training 1\.05 ms \[[^]]*\] \(10 % bandwidth\)\. GDN: training 2\.00 ms \[[^]]*\]\.")
        self.assertRegex(found["One GPU"], r"Softmax: forward 2\.00 ms \[[^]]*\] \(56 % MFU\), training 7\.00 ms \[[^]]*\] \(48 %\)\.$")
        self.assertIn("zeco fastest at 2 to 256 ranks", found["~ Simulated"])

    def test_a_calibration_does_not_boast_of_predicting_itself(self):
        more = [simulated(layer(name, time, ranks=2)) for name, time in (("zeco", 1.0), ("lasp2", 2.0))]
        alone = local(1.0, predicted_seconds=1.1e-3, **self.on_gpu)
        self.assertNotIn("Predictions", answer_text(alone, *more))
        self.assertIn("Predictions", answer_text(alone, scan(predicted_seconds=1.1e-4), *more))

    def test_what_is_simulated_of_processors_is_reported_from_the_gpus(self):
        more = [{**one, "topology": "32 x Example CPU, mpi"} for name, milliseconds in (("zeco", 1.0), ("lasp2", 2.0))
                for one in simulated(layer(name, milliseconds, ranks=256))]
        apart = "~ of processors, not of these GPUs: Linear attention"
        self.assertIn(apart, paragraphs(methods(**self.on_gpu | {"ranks": 2}), more)["~ Simulated"])
        self.assertNotIn("not of these GPUs", paragraphs(methods(), more)["~ Simulated"])

    def test_rates_of_ranks_that_shared_cores_are_said(self):
        more = [simulated(layer(name, time, ranks=128)) for name, time in (("zeco", 1.0), ("lasp2", 2.0))]
        doubt = "~ from rates of ranks that shared cores: Linear attention"
        self.assertIn(doubt, paragraphs(crowded(methods(), 2), *more)["~ Simulated"])
        self.assertNotIn(doubt, paragraphs(methods(), *more)["~ Simulated"])

    def test_of_several_lengths_the_answer_says_which_it_is(self):
        made = [one for tokens in (1024, 16384) for one in local(tokens / 16384, **self.on_gpu | {"tokens": tokens})]
        text = paragraphs(made, local(0.5, attention="gdn", **self.on_gpu | {"tokens": 4096}))["One GPU"]
        self.assertIn("16384 tokens (the most of 1024, 4096, 16384), 16 heads of 128", text)
        self.assertIn("GDN (4096 tokens): training 500 us", text)

    def test_several_gpus_need_no_such_words(self):
        made = [one for name in ("zeco", "lasp2") for one in layer(name, 1.1, **{**self.on_gpu, "ranks": 2})]
        self.assertNotIn("One GPU", paragraphs(local(0.826, **self.on_gpu), made))


def softmax(which="both", kernel="own", **changes):
    return layer("ring_attention_softmax", executor="nccl", ranks=1, which=which, attention="softmax", gate="none", dtype="bf16",
                 device={"gpu": "Example GPU"}, kernel=kernel, **changes)


def sentences(*launches):
    return " ".join(one_gpu.sentences(one_gpu.works(session(*launches))))


class OwnKernels(unittest.TestCase):
    def test_the_answer_says_what_cudnn_would_take(self):
        text = sentences(softmax(), softmax("forward"))
        self.assertIn("Softmax ran by our own kernels", text)
        self.assertIn("on an H200 cuDNN takes 0.49 of their time forward and 0.37 in training", text)
        self.assertIn("takes 0.33 of their time backward alone (docs", sentences(softmax("backward")))

    def test_not_where_cudnn_ran_or_softmax_did_not(self):
        for made in (softmax(kernel="cudnn"), layer(executor="nccl", ranks=1, device={"gpu": "Example GPU"}, attention="linear")):
            self.assertNotIn("our own kernels", sentences(made))

    def test_the_factors_are_those_of_the_records(self):
        records = [json.loads(line) for line in (ROOT / "results/h200-2/softmax.jsonl").read_text(encoding="utf-8").splitlines()]
        for way, factor in one_gpu.CUDNN_TAKES.items():
            found = {one["kernel"]: one["median_seconds"] for one in records
                     if one.get("pass") == way and one["ranks"] == 1 and "deterministic" not in (one.get("kernel_version") or "")}
            self.assertAlmostEqual(found["cudnn"] / found["own"], factor, 2)


if __name__ == "__main__":
    unittest.main()
