# SPDX-License-Identifier: Apache-2.0
"""Wrong results and wrong claims end a run, with their exit codes: python3 wrong_collectives_test.py PATH_OF_BENCH"""

import json
import subprocess
import sys
import tempfile
import unittest

BENCH = sys.argv.pop(1)
SMALL = ["--heads", "1", "--d-k", "4", "--d-v", "4", "-n", "3", "-w", "1", "-T", "20"]


class WrongCollectives(unittest.TestCase):
    def run_bench(self, *arguments):
        with tempfile.NamedTemporaryFile("r") as file:
            ended = subprocess.run([BENCH, *arguments, *SMALL, "-J", file.name], capture_output=True, text=True,
                                   timeout=600)
            return ended, [json.loads(line) for line in file]

    def test_a_wrong_result_is_a_row_without_times_and_exit_code_4(self):
        for executor in ("local", "mpi"):
            ended, records = self.run_bench("--collectives", "wrong_scan,all_scan", "--executor", executor,
                                            "--ranks", "3")
            self.assertEqual(ended.returncode, 4, ended.stderr)
            self.assertIn("wrong elements, first rank", ended.stderr)
            self.assertIn("1 of 2 cases gave no time", ended.stderr)
            records = {record["name"]: record for record in records}
            self.assertGreater(records["wrong_scan"]["wrong"], 0)
            self.assertNotIn("seconds", records["wrong_scan"])
            self.assertEqual(records["all_scan"]["wrong"], 0)  # the others still run

    def test_gpus_that_hold_a_recording_end_as_well(self):
        ended, _ = self.run_bench("--collectives", "wrong_scan,all_scan", "--executor", "nccl", "--ranks", "2",
                                  "--cadence", "graph")
        if ended.returncode == 2:
            self.skipTest(ended.stderr)
        self.assertEqual(ended.returncode, 4, ended.stderr)

    def test_every_check_counts(self):
        wrong = {}
        for checks in ("1", "3"):
            _, records = self.run_bench("--collectives", "wrong_scan", "--executor", "local", "--ranks", "3", "-c", checks)
            wrong[checks] = records[0]["wrong"]
        self.assertEqual(wrong["3"], 3 * wrong["1"])

    def test_a_wrong_claim_costs_no_other_case(self):
        ended, records = self.run_bench("--collectives", "lying_scan,all_scan", "--ranks", "2,3")
        self.assertEqual(ended.returncode, 3, ended.stderr)
        self.assertEqual([(record["name"], record["ranks"]) for record in records if "seconds" in record],
                         [("all_scan", 2), ("lying_scan", 3), ("all_scan", 3)])
        self.assertEqual([record["exit_code"] for record in records if "failed" in record], [3])
        self.assertIn("claims 64 bytes and 7 hops, but its schedules have 64 and 1", ended.stderr)

    def test_a_scan_is_proved_at_more_ranks_than_are_listed(self):
        ended, _ = self.run_bench("--collectives", "all_scan,disordered_scan", "--ranks", "2", "--dry-run")
        self.assertIn("# all_scan: right on words at 2 to 64 ranks", ended.stdout)
        self.assertEqual(ended.returncode, 3, ended.stderr)
        self.assertIn("disordered_scan, 8 ranks: rank 7 has 6 6, must have 0 1 2 3 4 5 6", ended.stderr)


if __name__ == "__main__":
    unittest.main()
