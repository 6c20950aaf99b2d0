# SPDX-License-Identifier: Apache-2.0
"""`python3 -m baton peers` with a bench and a python3 that play the parts of a GPU machine's."""

import json
import os
import stat
import unittest

from baton.peers.kernels import LEFT_OUT
from plots.example import InFolder, run

BENCH = """#!/bin/sh
# operator_bench: a record of each pass of the layer asked for.
for word; do last=$word; case $word in linear | gdn) layer=$word ;; esac; done
[ "$layer" != gdn ] || { echo "no GPU today"; exit 5; }
for pass in forward backward both; do
  echo "{\\"bench\\":\\"operator\\",\\"attention\\":\\"$layer\\",\\"pass\\":\\"$pass\\",\\"median_seconds\\":0.001,\\"relative_error\\":0.002}" >>"$last"
done
"""
PYTHON = """#!/bin/sh
# python3: of a machine with fla-core and perhaps FlashQLA, whose chunk_kda never ends.
case "$*" in *"'flash-qla'"*) [ "$PEER" = FlashQLA ]; exit ;; *"'torch'"*) exit 1 ;; -c*) exit 0 ;; esac
case "$2" in chunk_kda) exec sleep 60 ;; chunk_rwkv7) echo "a trace"; echo "no kernel image"; exit 1 ;; esac
for pass in forward both; do
  echo "{\\"peer\\":\\"$PEER\\",\\"kernel\\":\\"$2\\",\\"version\\":\\"fla-core 9\\",\\"pass\\":\\"$pass\\",\\"median_seconds\\":0.0025,\\"error\\":$ERROR}" >>"$4"
done
"""


class Peers(InFolder):
    def setUp(self):
        super().setUp()
        for name, text in (("operator_bench", BENCH), ("python3", PYTHON)):
            (self.folder / name).write_text(text, encoding="utf-8")
            (self.folder / name).chmod(stat.S_IRWXU)

    def measure(self, *words, error="0.004", peer="P"):
        path = f"{self.folder}:{os.environ['PATH']}"
        return run("peers", *words, "--programs", self.folder, "--out", self.folder / "out", "--launches", "2",
                   PATH=path, ERROR=error, PEER=peer)

    def test_a_kernel_stands_below_ours_with_its_ratio(self):
        done = self.measure("linear")
        self.assertEqual(done.returncode, 0, done.stderr)
        head, ours, theirs = done.stdout.splitlines()
        self.assertIn("over baton", head)
        self.assertEqual(ours.split()[:3], ["linear", "baton", "1.000"])
        self.assertIn("2.0e-03", ours)
        self.assertIn("fla-core 9", theirs)
        self.assertTrue(theirs.endswith("2.50 / - / 2.50"), theirs)
        kept = (self.folder / "out/peers.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual([json.loads(line)["pass"] for line in kept], ["forward", "both"] * 2, "a launch adds to the last")

    def test_a_kernel_that_leaves_something_out_is_not_exact_and_a_line_says_what(self):
        for peer, exact, said in (("P", "yes", []), ("FlashQLA", "no", [f"not exact: {LEFT_OUT['FlashQLA']}"])):
            head, ours, theirs, *below = self.measure("linear", peer=peer).stdout.splitlines()
            place = slice(head.index("exact") - 1, head.index("exact") + 5)
            self.assertEqual([ours[place].strip(), theirs[place].strip()], ["yes", exact])
            self.assertEqual(below, said)

    def test_flash_qla_has_a_row_of_its_own_with_a_quarter_of_the_heads_ungated(self):
        lines = self.measure("gdn", peer="FlashQLA").stdout.splitlines()
        self.assertEqual([line.split()[1] for line in lines[1:4]],
                         ["chunk_gated_delta_rule", "flash_qla", "flash_qla_quarter_ungated"])
        self.assertEqual(lines[4:], [f"not exact: {LEFT_OUT['FlashQLA']}"], "said once")

    def test_what_computes_something_else_has_no_ratio(self):
        for error in ("0.5", "NaN"):
            theirs = self.measure("linear", error=error).stdout.splitlines()[2]
            self.assertIn("WRONG", theirs)
            self.assertNotIn("2.50 /", theirs)

    def test_names_what_was_not_measured_and_why(self):
        done = self.measure("--limit", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("flash_qla was not measured: python3 has no flash-qla; 'pip install flash-qla' installs it", done.stdout)
        self.assertIn("chunk_kda was not measured: a launch took longer than 1 s (--limit)", done.stdout)
        self.assertIn("chunk_rwkv7 was not measured: no kernel image", done.stdout)
        self.assertIn("gdn: operator_bench ended with 5: no GPU today", done.stderr)
        self.assertIn("gdn      chunk_gated_delta_rule", done.stdout)

    def test_refuses_unknown_layers_and_no_launches_in_one_line(self):
        self.assertIn("unknown layer 'gla'; known: linear, gdn", self.measure("gla").stderr)
        self.assertIn("takes a whole number from 1, not '0'", self.measure("--tokens", "0").stderr)


if __name__ == "__main__":
    unittest.main()
