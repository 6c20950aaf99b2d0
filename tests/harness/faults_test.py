# SPDX-License-Identifier: Apache-2.0
"""A planted fault is noticed by a run of the bench that times it, which ends with exit code 4 and calls the row
wrong. Prints which row and which output showed it: python3 faults_test.py FAULTY_COLLECTIVE_BENCH FAULTY_OPERATOR_BENCH
FAULTY_MODEL_BENCH. A fifth of the faults, unless BATON_ALL_TESTS is in the environment.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

from drawn import drawn

MODEL = sys.argv.pop(3)
OPERATOR = sys.argv.pop(2)
COLLECTIVE = sys.argv.pop(1)
ROUNDS = ["--executor", "faulty", "-w", "2", "-n", "8", "-T", "100"]
# 4096 rows, and 512 KiB a state: messages over 256 KiB in one block.
STATES = [COLLECTIVE, "--collectives", "all_scan,all_gather_scan", "--heads", "32", "--d-k", "128", "--d-v", "32",
          "--blocks", "1,16", *ROUNDS]
OF_MATRICES = [COLLECTIVE, "--map", "affine", "--direction", "both", "--collectives",
               "all_scan,all_gather_scan,recursive_doubling", "--heads", "8", "--blocks", "1,3", *ROUNDS]
MATRICES = [*OF_MATRICES, "--d-k", "32", "--d-v", "16"]
WIDE_MATRICES = [*OF_MATRICES, "--d-k", "64", "--d-v", "32"]  # for which GPUs have tensor cores
# With BATON_FAULT_IN=peer faults in products on GPUs; on two of them, four ranks have two that combine.
ON_GPUS = os.environ.get("BATON_FAULT_IN") == "peer"
SHARED = ["--ranks-per-gpu", "2"] if ON_GPUS else []
LAYER = [OPERATOR, "--blocks", "1", *ROUNDS]
LONG = [*LAYER, "--methods", "zeco", "--tokens", "4160", "--heads", "2", "--d-k", "16", "--d-v", "16"]
HEADS = [*LAYER, "--methods", "zeco,lasp2", "--tokens", "128", "--heads", "20", "--d-k", "16", "--d-v", "16"]
# 320 KiB a state.
WIDE = [*LAYER, "--methods", "zeco", "--tokens", "128", "--heads", "20", "--d-k", "64", "--d-v", "64"]
# Layers with a delta rule, as long as 32 times their key channels: without gates near 0, and keys that leave some
# channels alone, a rank's matrix would be zero to the last bit.
DELTA = [*LAYER, "--tokens", "512", "--heads", "4", "--d-k", "16", "--d-v", "16"]
RULES = ("gdn", "kda", "deltanet", "rwkv7")
CHAINS = {rule: [*DELTA, "--attention", rule, "--methods", "zeco"] for rule in RULES}
CORRECTED = [*DELTA, "--attention", ",".join(RULES), "--methods", "zeco_corrected"]
GATHERED = [*DELTA, "--attention", ",".join(RULES), "--methods", "lasp2"]
DOUBLED = [*DELTA, "--attention", ",".join(RULES), "--methods", "linear_doubling"]

# More than the 20 Gflop that an oracle of a model may take, and so few tokens that gates keep a state over several ranks.
LARGE_MODEL = [MODEL, "--methods", "zeco,lasp2", "--lines", "full", "--width", "1024", "--mlp", "4096", "--layers", "1",
               "--tokens", "96", "--blocks", "1", *ROUNDS]

# The fault of a run, its ranks, and the bench and the sizes that reach it.
FAULTS = [
    ("chunk_at_192", 2, LONG),
    ("blocks_swapped", 2, STATES),
    ("combine_left_out", 4, STATES), ("combine_left_out", 4, HEADS),
    ("combines_lost", 4, STATES), ("combines_lost", 4, HEADS),
    ("mask_every_64th", 2, LONG),
    ("mask_at_191", 2, LONG),
    ("dg_twice", 2, HEADS),
    ("one_round_late", 2, STATES), ("one_round_late", 2, HEADS),
    ("never_refreshed", 2, STATES), ("never_refreshed", 2, HEADS),
    ("above_4096_tokens", 2, LONG),
    ("heads_from_16", 2, HEADS),
    ("heads_from_2", 2, HEADS),
    ("rows_from_2048", 4, STATES),
    ("garbage_once", 2, STATES), ("garbage_once", 2, HEADS),
    ("last_element_lost", 2, STATES), ("last_element_lost", 2, WIDE),
    ("wire_of_bf16", 2, STATES), ("wire_of_bf16", 2, HEADS),
    ("rank_0_dropped", 4, STATES), ("rank_0_dropped", 4, HEADS),
    ("prefix_ignored", 4, STATES), ("prefix_ignored", 4, HEADS),
    ("idle_after_four", 2, STATES), ("idle_after_four", 2, HEADS),
    ("nearest_rank_alone", 4, STATES), ("nearest_rank_alone", 4, HEADS),
    ("combine_left_out", 4, LARGE_MODEL), ("prefix_ignored", 4, LARGE_MODEL), ("nearest_rank_alone", 4, LARGE_MODEL),
    ("rank_0_dropped", 4, LARGE_MODEL), ("wire_of_bf16", 2, LARGE_MODEL),
    ("combine_left_out", 4, MATRICES), ("matrix_dropped", 4, MATRICES), ("matrix_transposed", 4, MATRICES),
    ("matrix_of_another_rank", 4, MATRICES), ("composition_swapped", 5, MATRICES),
    *[(fault, 4, command) for fault in ("matrix_dropped", "matrix_transposed", "matrix_zeroed")
      for command in (*CHAINS.values(), CORRECTED)],
    ("matrix_of_another_rank", 4, GATHERED), ("composition_swapped", 5, DOUBLED),
]


if ON_GPUS:
    FAULTS = [(fault, 4, [*command, *SHARED]) for command in (MATRICES, WIDE_MATRICES)
              for fault in ("matrix_dropped", "matrix_zeroed", "matrix_transposed", "matrix_of_another_rank")]


def run(command, ranks, fault=""):
    """The exit code, the records and the last line of a run."""
    with tempfile.NamedTemporaryFile("r") as file:
        ended = subprocess.run([*command, "--ranks", str(ranks), "-J", file.name], capture_output=True, text=True,
                               timeout=1200, env={**os.environ, "BATON_FAULT": fault})
        return ended.returncode, [json.loads(line) for line in file], ended.stderr


def noticed_by(code, records, errors):
    """What showed the fault, or an empty string."""
    if code != 4 or not any(record["wrong"] for record in records):
        return ""
    found = re.search(r"wrong elements, first (.*)", errors)
    return found.group(1) if found else "wrong"


class PlantedFaults(unittest.TestCase):
    def test_each_is_noticed(self):
        slipped = []
        for fault, ranks, command in FAULTS if ON_GPUS else drawn(FAULTS):
            bench = os.path.basename(command[0]).removeprefix("faulty_")
            noticed = noticed_by(*run(command, ranks, fault))
            print(f"{fault:22} {bench:18} {ranks} ranks  {noticed or 'NOT NOTICED'}", flush=True)
            if not noticed:
                slipped.append(f"{fault} ({bench}, {ranks} ranks)")
        self.assertEqual(slipped, [])

    def test_without_a_fault_every_row_is_right(self):
        layers = (LARGE_MODEL, STATES, LONG, HEADS, WIDE, *CHAINS.values(), CORRECTED, GATHERED, DOUBLED)
        for command in (MATRICES, *(() if ON_GPUS else drawn(layers))):
            command = [*command, *SHARED]
            code, records, errors = run(command, 4)
            self.assertEqual(code, 0, errors)
            self.assertTrue(records)
            self.assertEqual([record["wrong"] for record in records], [0] * len(records))


if __name__ == "__main__":
    if ON_GPUS and " GPU" in run([*MATRICES, *SHARED], 4)[2]:
        sys.exit(77)  # there are none: CTest calls that skipped
    unittest.main()
