# SPDX-License-Identifier: Apache-2.0
"""model_bench as a user meets it: its lines and columns, what it leaves in records, what it refuses:
python3 model_bench_test.py MODEL_BENCH"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ""


def run(*arguments, code=0):
    ended = subprocess.run([BENCH, *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != code:
        raise AssertionError(f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


def records(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "records.jsonl"
        run("--launches", "1", "-n", "3", "-w", "1", "-J", str(path), *arguments)
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class ModelBench(unittest.TestCase):
    def test_every_method_has_its_lines_and_dp_comes_once(self):
        found = records("--ranks", "2", "--tokens", "40", "--methods", "zeco,lasp2", "--peak", "0.01")
        self.assertEqual([(one["name"], one["line"]) for one in found],
                         [("local", "dp"), ("zeco", "split"), ("zeco", "full"), ("lasp2", "split"), ("lasp2", "full")])
        for one in found:
            self.assertEqual(one["wrong"], 0)
            self.assertGreater(one["relative_error"], 0)
            self.assertEqual("exposed_seconds" in one, one["line"] == "full")
            self.assertEqual(one["sent_bytes"] > 0, one["line"] == "full")
            self.assertEqual(one["peak_flops"], 1e10)

    def test_all_that_can_be_beside_the_blocks(self):
        found = records("--ranks", "2", "--tokens", "40", "--layers", "3", "--methods", "zeco", "--fsdp", "--head", "--optimizer")
        self.assertEqual({one["beside"] for one in found}, {"sharded weights, head, optimizer"})
        self.assertTrue(all(one["wrong"] == 0 and one["sent_bytes"] > 0 for one in found))

    def test_a_forward_pass_alone_has_a_third_of_the_flops_and_no_gradients(self):
        both, forward = (records("--ranks", "2", "--tokens", "40", "--methods", "zeco", "--lines", "full", "--pass", way)[0]
                         for way in ("both", "forward"))
        self.assertEqual([one["pass"] for one in (both, forward)], ["both", "forward"])
        self.assertEqual((forward["wrong"], forward["direction"]), (0, "forward"))
        self.assertEqual(both["flops_per_token"], 3 * forward["flops_per_token"])
        self.assertLess(forward["tensor_bytes"], both["tensor_bytes"])
        self.assertNotEqual(both["contest"], forward["contest"])
        large = ("--ranks", "2", "--tokens", "8192", "--methods", "zeco", "--lines", "full", "--pass", "forward", "--fsdp", "--head")
        self.assertEqual([one["wrong"] for one in records(*large)], [0])

    def test_a_sequence_is_shared_by_any_number_of_ranks(self):
        found = records("--ranks", "1,2", "--sequence", "64,128", "--methods", "zeco", "--lines", "full", "--pass", "forward")
        self.assertEqual([(one["ranks"], one["sequence"], one["tokens"], one["wrong"]) for one in found],
                         [(1, 64, 64, 0), (1, 128, 128, 0), (2, 64, 32, 0), (2, 128, 64, 0)])
        self.assertIn("65 tokens have no 2 equal shares", run("--ranks", "2", "--sequence", "65", "--methods", "zeco", code=6))

    def test_the_whole_sequence_may_run_on_every_rank_forward_only(self):
        asked = ("--ranks", "2", "--methods", "whole,zeco", "--lines", "full")
        for tokens in ("40", "8192"):  # by the oracle, and part by part
            found = records(*asked, "--pass", "forward", "--tokens", tokens)
            self.assertEqual([(one["name"], one["wrong"]) for one in found], [("whole", 0), ("zeco", 0)])
            self.assertEqual(found[0]["sent_bytes"], 2 * int(tokens) * 128 * 4)
        self.assertIn("the whole sequence is run forward only", run(*asked, "--tokens", "40", "-n", "3"))
        self.assertNotIn("whole", run("--ranks", "2", "--methods", "all", "--dry-run"))
        self.assertIn("whole", run("--ranks", "2", "--methods", "all", "--pass", "forward", "--dry-run"))

    def test_rows_have_tokens_per_second_and_utilisation(self):
        text = run("--ranks", "2", "--tokens", "40", "--methods", "zeco", "--launches", "1", "-n", "3", "--peak", "0.01")
        for word in ("tokens/s", "MFU", "time over dp", "exposed", "memory", "tiny: 2 layers of width 128"):
            self.assertIn(word, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_a_model_too_large_for_its_oracle_is_compared_part_by_part(self):
        found = records("--ranks", "2", "--tokens", "4096", "--methods", "zeco", "--lines", "full", "--fsdp", "--head", "--optimizer")
        self.assertEqual([one["wrong"] for one in found], [0])

    def test_a_large_model_is_simulated(self):
        text = run("--executor", "simulator", "--topology", str(ROOT / "topologies/shared_memory_host.json"), "--model",
                   "gla-1b", "--ranks", "8", "--tokens", "8192", "--methods", "zeco", "--blocks", "8")
        self.assertIn("gla-1b: 24 layers of width 2048", text)
        self.assertEqual(sum(line.startswith("~zeco") for line in text.splitlines()), 2)

    def test_hybrids_of_other_layers_are_verified_small_and_part_by_part(self):
        for name, layers in (("minimax-text-01", "8"), ("kimi-linear-48b-a3b", "4"), ("glm-5.3-flash", "4")):
            asked = ("--model", name, "--layers", layers, "--width", "64", "--heads", "2", "--d-k", "16", "--d-v", "16", "--mlp", "64",
                     "--methods", "zeco", "--lines", "full", "--ranks", "2")
            for more in (("--tokens", "40"), ("--tokens", "4096", "--pass", "forward"), ("--tokens", "4096", "--chunk", "64")):
                self.assertEqual([one["wrong"] for one in records(*asked, *more)], [0], (name, more))

    def test_models_are_simulated_as_gpus_run_them(self):
        found = records("--executor", "simulator", "--topology", str(ROOT / "topologies/dgx-h100-8.json"), "--methods", "whole",
                        "--lines", "full", "--pass", "forward", "--ranks", "4", "--heads", "2", "--d-k", "64", "--d-v", "64", "--dtype",
                        "bf16", "--tokens", "64")
        self.assertEqual([(one["dtype"], one["wrong"], one["sent_bytes"]) for one in found], [("bf16", 0, 2 * 3 * 64 * 128 * 2)])
        self.assertIn("only GPUs have arithmetic here", run("--ranks", "2", "--dtype", "bf16", "--heads", "2", "--d-k", "64", "--d-v", "64",
                                                            "--methods", "zeco", "--lines", "full", code=6))

    def test_what_is_refused_says_why(self):
        for arguments, words in ((("--model", "gla-2b"), "gla-1b"), (("--peak", "fast"), "--peak: 'fast' is not a number"),
                                 (("--methods", "local"), "unknown method"), (("--lines", "both"), "unknown line"),
                                 (("--pass", "backward"), "there are: forward, both"),
                                 (("--pass", "forward", "--optimizer"), "--optimizer: a forward pass alone makes no gradients"),
                                 (("--sequence", "64", "--tokens", "64"), "--sequence")):
            self.assertIn(words, run("--ranks", "2", *arguments, code=2))


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
