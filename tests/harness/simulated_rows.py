# SPDX-License-Identifier: Apache-2.0
"""Rows of the simulator and of predictions; run by command_line_test.py."""

import csv
import json
import tempfile
import unittest

from benches import BENCH, OPERATOR_BENCH, SMALL, machine_text, run


def without_breaks(text):
    return " ".join(text.replace("\n#   ", " ").split())


class Simulator(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.machine = self.folder.name + "/machine.json"
        with open(self.machine, "w") as file:
            file.write(machine_text())

    def tearDown(self):
        self.folder.cleanup()

    def records(self, *arguments, bench=BENCH):
        path = self.folder.name + "/records.jsonl"
        ended = run(*arguments, "-J", path, bench=bench)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(path) as file:
            records = [json.loads(line) for line in file]
        keys = [field["key"] for field in json.loads(run("--schema", bench=bench).stdout)]
        for record in records:
            self.assertEqual(list(record), [key for key in keys if key in record])
        return records, ended.stdout

    def test_rows_say_that_they_are_simulated(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "1,2,8",
                                      "--collectives", "all_scan,ring_exchange", "--blocks", "1,4", *SMALL)
        rows = [line.split() for line in table.splitlines() if line.startswith("~all_scan")]
        self.assertEqual([row[1] for row in rows], ["1", "1", "2", "2", "8", "8"])
        self.assertIn("# simulator, 8 ranks on made up: ", table)
        self.assertIn("calibrated on nothing", without_breaks(table))
        for measured in ("warm-up", "timer", "median", "interval"):
            self.assertNotIn(measured, table)
        self.assertEqual(len(records), 9)
        alone = [r for r in records if "skipped" in r]
        self.assertEqual([(r["name"], r["ranks"]) for r in alone], [("all_scan", 1), ("all_scan", 1)])
        self.assertIn("takes no time", alone[0]["skipped"])
        for r in filter(lambda r: "skipped" not in r, records):
            self.assertEqual((r["executor"], r["topology"], r["rounds"], r["warmup"]), ("simulator", "made up", 1, 0))
            self.assertEqual((len(r["seconds"]), r["wrong"], r["predicted_seconds"]), (1, 0, None))
            self.assertNotIn("rank_seconds", r)

    def test_keys_and_values_are_as_large_as_the_states_of_a_sweep(self):
        records, _ = self.records("--executor", "local", "--collectives", "ring_exchange", "--ranks", "2", "-b", "64K", "-e",
                                  "128K", "-n", "1")
        self.assertEqual([(r["tokens"], r["sent_bytes"]) for r in records], [(64, 65536), (64, 131072)])
        records, _ = self.records("--executor", "local", "--collectives", "ring_exchange", "--ranks", "2", "-b", "64K",
                                  "--tokens", "3", "-n", "1")
        self.assertEqual(records[-1]["tokens"], 3)

    def test_a_wire_that_rounds_shows_its_error(self):
        records, table = self.records("--executor", "local,local_bf16", "--collectives", "all_scan", "--ranks", "3",
                                      "--blocks", "1", "-b", "64K", "-n", "1", "--wide")
        exact, rounded = records
        self.assertEqual((exact["wire_dtype"], exact["relative_error"], exact["tolerance"]), ("f32", 0, 0))
        self.assertEqual((rounded["wire_dtype"], rounded["wrong"]), ("bf16", 0))
        self.assertGreater(rounded["relative_error"], 1e-4)
        self.assertLess(rounded["relative_error"], rounded["tolerance"])
        self.assertEqual(2 * rounded["sent_bytes"], exact["sent_bytes"])
        self.assertIn(f" {rounded['relative_error']:.1e}     0 ", table)

    def test_times_are_those_of_the_machine(self):
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "4,8",
                                  "--collectives", "direct_all_gather", "--heads", "1", "--d-k", "100", "--d-v", "9")
        copied = 4000e-9 * 2  # of its own map, read and written
        for r, wires in zip(records, (3 * [1e-6], 3 * [1e-6] + 4 * [5e-6])):
            ports = [(1e-7 + 4000e-9) * wires.count(latency) + latency for latency in set(wires)]
            # Ports in and between nodes work at once; in the second the last message comes in behind three others.
            self.assertGreaterEqual(r["median_seconds"], max(max(ports), copied))
            self.assertLess(r["median_seconds"], sum(ports) + copied)

    def test_what_was_verified_in_its_place(self):
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "8",
                                  "--collectives", "all_scan", "--blocks", "100")
        sizes = {key: value for key, value in records[0].items() if key.startswith("verified_")}
        self.assertEqual(sizes, {"verified_elements": 8 * 2 * 32 * 4, "verified_heads": 2, "verified_d_k": 32,
                                 "verified_d_v": 4, "verified_tokens": 8, "verified_blocks": 64, "verified_ranks": 8})
        self.assertEqual((records[0]["blocks"], records[0]["heads"]), (100, 32))

    def test_blocks_are_no_more_than_there_are_rows(self):
        for place in (["--executor", "local"], ["--executor", "simulator", "--topology", self.machine]):
            records, table = self.records(*place, "--ranks", "3", "--collectives", "all_scan", "--blocks", "100", "--wide",
                                          *SMALL)
            self.assertEqual((records[-1]["blocks"], records[-1]["blocks_asked"]), (4, 100))
            row = next(line for line in table.splitlines() if line.startswith(("all_scan", "~all_scan")))
            self.assertEqual(row.split()[6], "4")

    def test_ranks_fill_the_nodes_of_the_machine(self):
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "2,8",
                                  "--collectives", "all_scan,hierarchical_scan", "--baseline", "all_scan", *SMALL)
        self.assertEqual([r["ranks_per_node"] for r in records], [0, 0, 4, 4])
        self.assertTrue(all(r["ratio"] for r in records))

    def test_operators_are_verified_at_another_size_and_say_so(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "8",
                                      "--methods", "zeco", "--tokens", "4096", "--dtype", "bf16", bench=OPERATOR_BENCH)
        head, row = [next(line for line in table.splitlines() if line.startswith(word)) for word in ("method", "~zeco")]
        self.assertEqual(head.split()[-2:], ["verified", "memory"])
        self.assertEqual(row.split()[-2], "20x2")
        self.assertEqual((records[0]["verified_tokens"], records[0]["verified_chunk"]), (20, 8))
        self.assertEqual((records[0]["tokens"], records[0]["chunk"]), (4096, 64))
        self.assertEqual((records[0]["dtype"], records[0]["verified_dtype"]), ("bf16", "f32"))

    def test_comma_separated_values_and_more_columns(self):
        path = self.folder.name + "/rows.csv"
        asked = ["--executor", "local", "--ranks", "2", "--collectives", "all_scan,ring_scan", *SMALL]
        records, table = self.records(*asked, "--csv", path, "--wide")
        self.assertRegex(table, r"(?m)^collective .* wrong +p50 +p99 +last$")
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["case"] for row in rows], [record["case"] for record in records])
        self.assertEqual([float(row["p99_seconds"]) for row in rows], [record["p99_seconds"] for record in records])
        with open(path, "w") as file:
            file.write("other,titles\n")
        refused = run(*asked, "--csv", path)
        self.assertEqual((refused.returncode, len(refused.stderr.splitlines())), (2, 1), refused.stderr)

    def test_a_native_cannot_be_simulated(self):
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "2",
                                  "--collectives", "all_scan,mpi_exscan", *SMALL)
        self.assertEqual([record["name"] for record in records], ["all_scan"])

    def test_a_bound_is_of_the_links_between_the_ranks(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "4,8",
                                      "--collectives", "ring_scan", "--blocks", "1", *SMALL)
        bytes_seconds = 4 * 4 * 4 / 1e9
        self.assertAlmostEqual(records[0]["bound_seconds"], 3 * 1.1e-6 + bytes_seconds, places=12)
        # One of seven messages goes from node to node.
        self.assertAlmostEqual(records[1]["bound_seconds"], 6 * 1.1e-6 + 5.1e-6 + bytes_seconds, places=11)
        self.assertLessEqual(records[1]["bound_seconds"], records[1]["median_seconds"])
        self.assertIn("between nodes", without_breaks(table))

    def test_real_rows_have_a_prediction_beside_them(self):
        records, table = self.records("--executor", "local,simulator", "--topology", self.machine, "--ranks", "3",
                                      "--collectives", "all_scan", "--blocks", "2", *SMALL)
        real, simulated = records
        self.assertEqual([real["executor"], simulated["executor"]], ["local", "simulator"])
        self.assertEqual(real["predicted_seconds"], simulated["median_seconds"])
        self.assertIn("# predicted against measured", table)
        self.assertNotIn("predicted against measured", self.records("--executor", "local", *SMALL)[1])

    def test_a_simulated_round_has_a_trace(self):
        path = self.folder.name + "/trace.json"
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "3",
                                  "--collectives", "all_scan", "--blocks", "2", "--trace", path, *SMALL)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        last = max(event["ts"] + event["dur"] for event in events if event["ph"] == "X")
        self.assertAlmostEqual(last * 1e-6, records[0]["median_seconds"], places=9)

    def test_a_calibration_is_a_machine_for_the_simulator(self):
        path = self.folder.name + "/here.json"
        records, _ = self.records("--ranks", "2", "--collectives", "all_scan", "--calibrate", path, *SMALL)
        self.assertGreater(records[0]["predicted_seconds"], 0)
        records, table = self.records("--executor", "simulator", "--topology", path, "--ranks", "2", "--collectives",
                                      "all_scan", *SMALL)
        self.assertIn("# simulator, 2 ranks on ", table)
        self.assertIn("calibrated: ", without_breaks(table))
        self.assertNotIn("extrapolated", records[-1])
        with open(path) as file:
            calibration = json.load(file)["calibration"]
        self.assertEqual(calibration["most_ranks"], 2)
        self.assertEqual(records[-1]["stands_on"], calibration["stands_on"])

    def test_kernels_of_one_rank_run_among_links_from_elsewhere(self):
        path = self.folder.name + "/mixed.json"
        layer = ["--tokens", "64", "--heads", "2", "--d-k", "16", "--d-v", "16", "-n", "2"]
        ended = run("--executor", "local", "--ranks", "1", "--methods", "local", "--topology", self.machine, "--calibrate",
                    path, *layer, bench=OPERATOR_BENCH)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        records, table = self.records("--executor", "simulator", "--topology", path, "--ranks", "2,8", "--methods",
                                      "zeco,lasp1,lasp2,local", *layer, bench=OPERATOR_BENCH)
        self.assertRegex(without_breaks(table),
                         r"# simulator, 8 ranks on links of made up, kernels of .*; calibrated: kernels: .*, executor "
                         r"local, 1 rank, commit .*; all else: made up, residual \d+ %")
        for record in records:
            self.assertRegex(record["topology"], "^links of made up, kernels of .")
            alone = record["name"] == "local"
            self.assertEqual(record.get("extrapolated"), None if alone else "its links were not measured, but its kernels")
            self.assertGreater(record["median_seconds"], 0)

    def test_a_calibration_measures_kernels_that_only_some_ranks_run(self):
        path = self.folder.name + "/kernels.json"
        ended = run("--ranks", "2", "--methods", "ring_attention", "--tokens", "64", "--heads", "2", "-n", "2",
                    "--calibrate", path, bench=OPERATOR_BENCH)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(path) as file:
            kernels = json.load(file)["device"]["kernels"]
        self.assertIn("left_product_block", kernels)
