# SPDX-License-Identifier: Apache-2.0
"""Masks, packed documents and shares as users ask for them: python3 command_line_masks_test.py COLLECTIVE_BENCH OPERATOR_BENCH"""

import unittest

from benches import OPERATOR_BENCH, TOPOLOGIES, OperatorRecords, run


class Masks(OperatorRecords, unittest.TestCase):
    def test_packed_documents(self):
        wanted = ["--packed", "9", "--heads", "4", "--d-k", "8", "--d-v", "8", "--tokens", "20", "--chunk", "8",
                  "-n", "3", "-w", "1"]
        for attention in ("linear", "rwkv7"):
            rows = self.records("--methods", "zeco,lasp2,zeco_zigzag,ulysses", "--attention", attention, "--ranks", "2", layer=wanted)
            self.assertEqual([(r["wrong"], r["packed"]) for r in rows], [(0, 9)] * 4)
        for r in self.records("--methods", "chunkwise_local,token_ring", "--ranks", "2", layer=wanted, code=6):
            self.assertEqual(r["skipped"], "it takes one document, not packed ones")
        for r in self.records("--methods", "all_gather_kv,ring_attention_zigzag", "--ranks", "2", "--packed-draw", "lognormal",
                              layer=wanted):
            self.assertEqual((r["wrong"], r["packed_draw"]), (0, "lognormal"))
            self.assertLess(r["visible_pairs"], 20 * 41)

    def test_documents_that_are_given(self):
        wanted = ["--documents", "7,0,1,12", "--heads", "4", "--d-k", "8", "--d-v", "8", "--chunk", "8", "-n", "3", "-w", "1"]
        for r in self.records("--methods", "zeco,ulysses_softmax,ring_attention_zigzag", "--ranks", "1,2", layer=wanted):
            self.assertEqual((r["wrong"], r["documents"], r["sequence"]), (0, "7,0,1,12", 20))
            self.assertEqual(r.get("visible_pairs"), None if r["name"] == "zeco" else 7 * 4 + 1 + 6 * 13)

    def test_windows(self):
        wanted = ["--mask", "window:5", "--heads", "4", "--d-k", "8", "--d-v", "8", "--tokens", "20", "-n", "3", "-w", "1"]
        halo, ring, token_ring = self.records("--methods", "window_halo,ring_attention_softmax,token_ring", "--ranks", "2",
                                              layer=wanted)
        for r in (halo, ring):
            self.assertEqual((r["wrong"], r["mask"], r["visible_pairs"]), (0, "window:5", 40 * 5 - 10))
        self.assertEqual((halo["sent_bytes"], halo["hops"]), (4 * 4 * 16 * 4, 2), "the keys, and their gradients")
        self.assertIn("a window may hide that rank's keys alone", token_ring["skipped"])

    def test_balance_is_the_most_work_of_a_rank_over_the_mean(self):
        wanted = ["--heads", "4", "--d-k", "64", "--d-v", "64", "--tokens", "64", "-n", "2", "-w", "0"]
        methods = ["--methods", "ring_attention_softmax,ring_attention_zigzag,ulysses_softmax,zeco"]
        for words in (["--executor", "local"], ["--executor", "simulator", "--topology", TOPOLOGIES + "/dgx-h100-8.json"]):
            contiguous, zigzag, heads, linear = (r["balance"] for r in self.records(*methods, *words, "--ranks", "4", layer=wanted))
            self.assertAlmostEqual(contiguous, 2 - 1 / 4, delta=0.03)
            for even in (zigzag, heads, linear):
                self.assertAlmostEqual(even, 1, delta=0.01)
        alone, = self.records("--methods", "ring_attention_softmax", "--ranks", "1", layer=wanted)
        self.assertNotIn("balance", alone)

    def test_queries_that_see_their_own_key_alone_have_gradients_of_zero(self):
        shape = ["-n", "1", "-w", "0", "--executor", "local", "--heads", "2"]
        for words in (["--mask", "window:1", "--tokens", "256", "--methods", "window_halo,ring_attention_softmax"],
                      ["--documents", ",".join(["1"] * 256 + ["256"]), "--methods", "ring_attention_softmax,ulysses_softmax"],
                      ["--mask", "window:1", "--tokens", "1500", "--d-k", "8", "--d-v", "8", "--methods",
                       "window_halo,ulysses_softmax,ring_attention_zigzag"]):
            for r in self.records(*words, "--ranks", "2", layer=shape):
                self.assertEqual(r["wrong"], 0, words)

    def test_all_methods_are_those_that_the_mask_is_for(self):
        def listed(*words):
            ended = run("--methods", "all", *words, "--tokens", "64", "--ranks", "2", "--benchmark_list_tests=true", bench=OPERATOR_BENCH)
            return {case.split("/")[0] for case in ended.stdout.split()}

        self.assertEqual(listed("--mask", "window:8") - listed(), {"window_halo", "window_halo_zigzag"})
        ended = run("--methods", "window_halo", "--tokens", "64", "--ranks", "2", bench=OPERATOR_BENCH)
        self.assertIn("it needs a window, such as --mask window:1024", " ".join(ended.stderr.split()))

    def test_shares_that_differ(self):
        wanted = ["--heads", "4", "--d-k", "8", "--d-v", "8", "--chunk", "8", "-n", "3", "-w", "1"]
        rows = self.records("--methods", "zeco,ulysses,ring_attention_zigzag", "--ranks", "2", "--sequence", "19", "--shares", "all",
                            layer=wanted)
        self.assertEqual([(r["wrong"], r["sequence"]) for r in rows], [(0, 19)] * 9)
        self.assertEqual(len({r["contest"] for r in rows}), 2, "shares compete")
        found = {(r["name"], r.get("shares", "padded")): (r["tokens"], round(r.get("padding", 0) * 19)) for r in rows}
        self.assertEqual(found[("zeco", "padded")], (10, 1))
        self.assertEqual(found[("zeco", "even")], (10, 0))
        self.assertEqual(found[("zeco", "last")], (10, 0))
        self.assertEqual(found[("ring_attention_zigzag", "padded")], (10, 1))
        self.assertEqual(found[("ring_attention_zigzag", "last")], (10, 0))

    def test_padded_documents_beside_shares_that_pad_none(self):
        wanted = ["--heads", "4", "--d-k", "8", "--d-v", "8", "--chunk", "8", "-n", "3", "-w", "1", "--shares", "padded,even",
                  "--pad-documents", "4", "--documents", "7,0,1,12"]
        methods = ["--methods", "zeco,ulysses,zeco_zigzag,ring_attention_zigzag,ulysses_softmax"]
        for mask in ("causal", "window:3"):
            rows = [r for r in self.records(*methods, "--ranks", "2", "--mask", mask, layer=wanted) if "skipped" not in r]
            self.assertEqual({(r["wrong"], r["sequence"], r["documents"]) for r in rows}, {(0, 20, "7,0,1,12")})
            found = {(r["name"], r.get("shares", "padded")): (r["tokens"], round(r.get("padding", 0), 6), r.get("pad_documents", 0)) for r in rows}
            self.assertEqual(len(found), 10 if mask == "causal" else 4)
            self.assertEqual({one for (_, shares), one in found.items() if shares == "padded:4"}, {(12, 0.2, 4)})
            self.assertEqual({one for (_, shares), one in found.items() if shares == "even"}, {(10, 0, 0)})
            self.assertEqual(len({r["contest"] for r in rows}), 2 if mask == "causal" else 1, "both forms of shares compete")
            self.assertEqual({r.get("visible_pairs") for r in rows if "softmax" in r["name"]}, {
                7 * 4 + 1 + 6 * 13 if mask == "causal" else 18 + 1 + 33}, "those of padding do not count")
        drawn = ["--packed", "9", "--packed-draw", "lognormal", "--sequence", "41", *wanted[:-2]]
        for words in (["--executor", "local", "--ranks", "1,3"],
                      ["--executor", "simulator", "--ranks", "8", "--topology", TOPOLOGIES + "/dgx-h100-8.json"]):
            for r in self.records("--methods", "zeco,all_gather_kv", *words, layer=drawn):
                self.assertEqual((r["wrong"], r["sequence"]), (0, 41))
                self.assertIn((r["shares"], r.get("pad_documents")), (("even", None), ("padded:4", 4)))

    def test_methods_of_a_contest_have_the_same_documents(self):
        wanted = ["--heads", "4", "--d-k", "8", "--d-v", "8", "-n", "2", "-w", "0", "--packed", "9", "--sequence", "41", "--ranks", "4",
                  "--shares", "padded,even"]
        for words in ([], ["--pad-documents", "4"]):
            rows = self.records("--methods", "all_gather_kv,ring_attention_zigzag", "--executor", "local", *words, layer=wanted)
            self.assertEqual(len({r["visible_pairs"] for r in rows}), 1)

    def test_padding_of_documents_that_is_too_long_costs_no_other_row(self):
        wanted = ["--heads", "2", "--d-k", "8", "--d-v", "8", "-n", "2", "-w", "0", "--packed", "2", "--sequence", "4K", "--ranks", "2"]
        padded, even = self.records("--methods", "zeco", "--shares", "padded,even", "--pad-documents", "16M", layer=wanted)
        self.assertIn("with their padding, more than 16777216", padded["skipped"])
        self.assertEqual(even["wrong"], 0)

    def test_shares_that_are_given(self):
        wanted = ["--heads", "6", "--d-k", "8", "--d-v", "8", "--chunk", "8", "-n", "3", "-w", "1", "--shares", "7,0,12"]
        rows = self.records("--methods", "zeco,zeco_zigzag,ulysses_softmax,all_gather_kv", "--ranks", "3", layer=wanted)
        rows += self.records("--methods", "window_halo", "--mask", "window:3", "--ranks", "3", layer=wanted)
        self.assertEqual([(r["wrong"], r["shares"], r["sequence"], r["tokens"]) for r in rows], [(0, "7,0,12", 19, 12)] * 5)
        ring, usp = self.records("--methods", "ring_attention_striped,usp", "--ranks", "3", layer=wanted, code=6)
        self.assertIn("striped tokens are dealt in turn", ring["skipped"])
        self.assertIn("its text has equal shares", usp["skipped"])

    def test_shares_whose_smaller_cases_would_vanish(self):
        """A case is proven with fewer tokens before it runs, on two ranks, and simulated rows are verified so."""
        wanted = ["--heads", "2", "--d-k", "8", "--d-v", "8", "-n", "3", "-w", "1"]
        for shares in ("0,0,5", "1,1,500"):
            for r in self.records("--methods", "zeco,all_gather_kv", "--shares", shares, "--ranks", "3", layer=wanted):
                self.assertEqual((r["wrong"], r["shares"]), (0, shares))
        many = ",".join(["0"] * 16 + ["64"] * 16)
        for r in self.records("--methods", "zeco,ring_attention_softmax", "--shares", many, "--ranks", "32", "--executor", "simulator",
                              "--topology", TOPOLOGIES + "/dgx-h100-32x8.json", layer=wanted):
            self.assertEqual(r["wrong"], 0)

    def test_bad_input(self):
        for words, said in ((["--mask", "window"], "did you mean 'window:W'?"), (["--mask", "window:0"], "--mask window:0: '0'"),
                            (["--mask", "window16"], "unknown mask 'window16'"), (["--mask", "window:W"], "--mask window:W: 'W'"),
                            (["--mask", "half"], "there are: causal, full, window:W"), (["--documents", "3,x"], "--documents"),
                            (["--packed-draw", "lognormal"], "--packed-draw requires --packed"),
                            (["--documents", "3", "--tokens", "3"], "--documents excludes --tokens"),
                            (["--shares", "even"], "--shares needs the number of all tokens"),
                            (["--shares", "evn", "--sequence", "8"], "did you mean 'even'?"),
                            (["--shares", "3,4", "--sequence", "8"], "--shares: 7 tokens together, not the 8 of the sequence"),
                            (["--shares", "3,x"], "--shares: 'x' is not a number of tokens"),
                            (["--shares", "0,0"], "--shares: 0 tokens together"),
                            (["--pad-documents", "4", "--sequence", "8"], "--pad-documents needs documents"),
                            (["--pad-documents", "4", "--packed", "8"], "--pad-documents needs documents and the number of all tokens"),
                            (["--pad-documents", "4", "--documents", "8", "--mask", "full"], "a full mask would see the padding"),
                            (["--shares", "even", "--tokens", "8"], "--tokens excludes --shares")):
            ended = run(*words, bench=OPERATOR_BENCH)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(said, ended.stderr)


if __name__ == "__main__":
    unittest.main()
