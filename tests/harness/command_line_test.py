# SPDX-License-Identifier: Apache-2.0
"""The benches as their users meet them: python3 command_line_test.py COLLECTIVE_BENCH
OPERATOR_BENCH"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

OPERATOR_BENCH = sys.argv.pop(2)
BENCH = sys.argv.pop(1)
TOPOLOGIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "topologies")
SMALL = ["--heads", "1", "--d-k", "4", "--d-v", "4", "--tokens", "4", "-n", "3", "-w", "1"]


def run(*arguments, launcher=(), bench=BENCH, **environment):
    return subprocess.run([*launcher, bench, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def mpirun(processes):
    return ["mpirun", "-n", str(processes), "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]


def machine_text(**link):
    """A machine of two nodes with four ranks each; `link` changes the wires in the nodes."""
    wire = {"latency_seconds": 1e-6, "overhead_seconds": 1e-7, "bytes_a_second": 1e9, "source": "made up"}
    rate = {"flops_a_second": 1e9, "bytes_a_second": 1e9, "source": "made up"}
    copy = {"bytes_a_second": 1e9, "source": "made up"}
    return json.dumps({"name": "made up", "description": "For a test.",
                       "machine": {"nodes": 2, "ranks_a_node": 4, "source": "made up"},
                       "links": {"intra_node": {**wire, **link}, "inter_node": {**wire, "latency_seconds": 5e-6}},
                       "device": {"kernel": rate, "copy": copy, "combine": rate}})


class BadInput(unittest.TestCase):
    """Exit code 2 and one clear line."""

    def refuse(self, *arguments, words, launcher=()):
        ended = run(*arguments, launcher=launcher)
        ours = [line for line in ended.stderr.splitlines() if line.startswith("baton:")]
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertEqual(len(ours), 1, ended.stderr)
        self.assertIn(words, ours[0])

    def test_names(self):
        self.refuse("--collectives", "all_scam", words="did you mean 'all_scan'?")
        self.refuse("--executor", "pear", words="unknown executor 'pear'")
        self.refuse("--benchmark_filte=x", words="benchmark_filte")
        self.refuse("--benchmark_repetitions=2", words="--benchmark_repetitions is not for several ranks")
        self.refuse("--ranks", "2", *SMALL, "--benchmark_filter=nothing", words="matches no case")

    def test_sizes(self):
        self.refuse("--heads", "0", words="--heads")
        self.refuse("-b", "100", words="cannot be cut")
        self.refuse("-n", "-1", words="--rounds")

    def test_places_of_records(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse("-J", folder, words="is a directory")
            self.refuse("-J", folder + "/none/x.jsonl", words="cannot write")
            self.refuse("--benchmark_out=" + folder + "/none/x.json", words="cannot write")

    def test_traces_that_cannot_be(self):
        with tempfile.TemporaryDirectory() as folder:
            one = ["--collectives", "all_scan", "--ranks", "2", *SMALL]
            self.refuse(*one, "--blocks", "1,2", "--trace", folder + "/x",
                        words="--trace takes a single case, but these flags ask for 2")
            self.refuse(*one, "--trace", folder, words="is a directory")
            self.refuse(*one, "--trace", folder + "/none/x", words="cannot write a trace to")
            self.refuse(*one, "--trace", folder + "/x", "--dry-run", words="--dry-run excludes --trace")
            self.refuse(*one, "--calibrate", folder + "/x", "--dry-run", words="nothing to --calibrate")
            self.assertEqual(os.listdir(folder), [])

    def test_machines_that_cannot_be(self):
        good = json.loads(machine_text())
        del good["device"]["copy"]["bytes_a_second"]
        missing = json.dumps(good)
        for text, words in ((missing, "device.copy.bytes_a_second: missing"),
                            (machine_text(bytes_a_second=0), "links.intra_node.bytes_a_second: expected a number"),
                            ("hello", "not JSON at line 1"), ("[" * 10_000_000, "more than 1 MiB"),
                            ("[" * 100_000, "brackets within brackets"), ("", "not JSON")):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                self.refuse_alone("--executor", "simulator", "--topology", file.name, words=words)
                self.refuse_alone("--executor", "simulator", "--topology", file.name, words=file.name)
        self.refuse_alone("--executor", "simulator", "--topology", TOPOLOGIES, words="a directory")
        self.refuse_alone("--executor", "simulator", "--topology", "/none/x.json", words="cannot be opened")

    def test_ranks_without_a_machine_or_on_too_small_a_one(self):
        self.refuse_alone("--executor", "simulator", words="--topology")
        four = os.path.join(TOPOLOGIES, "h200-4.json")
        self.refuse_alone("--executor", "simulator", "--topology", four, "--ranks", "4,5",
                          words="5 ranks do not fit on h200-4")

    def test_two_outputs_in_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            both = f"{folder}/both.json"
            self.refuse_alone("--calibrate", both, "-J", both, "--ranks", "2", words="two outputs at once")

    def test_calibrations_that_cannot_be(self):
        with tempfile.TemporaryDirectory() as folder:
            four = os.path.join(TOPOLOGIES, "h200-4.json")
            place = ["--calibrate", folder + "/x.json"]
            self.refuse_alone("--calibrate", folder, words="is a directory")
            self.refuse_alone(*place, "--ranks", "1", words="at least two ranks")
            self.refuse_alone(*place, "--executor", "simulator", "--topology", four, words="give one of them")
            self.refuse_alone(*place, "--executor", "local,mpi", words="measures one executor")
            self.assertEqual(os.listdir(folder), [])

    def refuse_alone(self, *arguments, words):
        """Nothing but that line."""
        ended = run(*arguments)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)
        self.assertTrue(ended.stderr.startswith("baton: "), ended.stderr)
        self.assertIn(words, ended.stderr)

    def test_worlds_that_are_too_small(self):
        self.refuse("--ranks", "3", *SMALL, launcher=mpirun(2), words="the launcher started 2")
        self.refuse("--ranks", "2", *SMALL, launcher=mpirun(3), words="the launcher started 3")
        self.refuse("--ranks", "4", *SMALL, launcher=mpirun(1), words="this one runs alone")
        self.refuse("--heads", "0", launcher=mpirun(2), words="--heads")


class Runs(unittest.TestCase):
    def records(self, *arguments, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run(*arguments, *SMALL, "-J", path, **options)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                return [json.loads(line) for line in file], ended.stdout

    def test_one_launch_runs_every_rank_count(self):
        records, _ = self.records("--collectives", "all_scan,mpi_exscan", "--ranks", "1,2,3", "--blocks", "2")
        self.assertEqual([r["ranks"] for r in records], [1, 1, 2, 2, 3, 3])
        for r in records:
            self.assertEqual(r["wrong"], 0)
            self.assertEqual(len(r["seconds"]), 3)
            self.assertEqual([len(row) for row in r["rank_seconds"]], [3] * r["ranks"])
            self.assertEqual(r["seconds"], [max(column) for column in zip(*r["rank_seconds"])])

    def test_under_the_users_own_mpirun(self):
        records, _ = self.records("--collectives", "two_shot", "--ranks", "2,3", launcher=mpirun(3))
        self.assertEqual([r["ranks"] for r in records], [2, 3])

    def test_under_mpirun_alone_it_takes_the_world_it_finds(self):
        records, _ = self.records("--collectives", "two_shot", launcher=mpirun(3))
        self.assertEqual([r["ranks"] for r in records], [3])

    def test_one_rank_and_the_users_benchmark_variables(self):
        records, _ = self.records("--collectives", "all_scan,mpi_exscan", "--ranks", "1", BENCHMARK_REPETITIONS="3")
        self.assertEqual([(r["ranks"], r["blocks"]) for r in records], [(1, 1), (1, 1)])

    def test_streaming_and_reverse(self):
        records, _ = self.records("--collectives", "all_scan", "--ranks", "2", "--cadence", "isolated,streaming",
                                  "--direction", "both")
        self.assertEqual(len(records), 4)
        self.assertEqual({(r["cadence"], r["direction"]) for r in records},
                         {(c, d) for c in ("isolated", "streaming") for d in ("forward", "reverse")})
        for r in records:
            self.assertEqual(r["seconds"], [max(column) for column in zip(*r["rank_seconds"])])

    def test_a_native_away_from_home_is_a_skipped_row(self):
        records, table = self.records("--collectives", "all_scan,mpi_exscan", "--executor", "local", "--ranks", "2")
        self.assertEqual([("skipped" in r) for r in records], [False, True])
        self.assertNotIn("seconds", records[1])
        self.assertIn("skipped: mpi_exscan is no native of local", table)

    def test_a_trace_has_all_ranks_steps_and_messages(self):
        for executor, launcher in (("local", ()), ("mpi", ()), ("mpi", mpirun(3))):
            with tempfile.TemporaryDirectory() as folder:
                path = folder + "/trace.json"
                _, table = self.records("--executor", executor, "--collectives", "all_scan", "--ranks", "3", "--blocks",
                                        "2", "--trace", path, launcher=launcher)
                self.assertIn("# trace of one more round: " + path, table)
                with open(path) as file:
                    events = json.load(file)["traceEvents"]
            verbs = collections.Counter((event["pid"], event["cat"]) for event in events if event["ph"] == "X")
            self.assertEqual(verbs, {(0, "send"): 2, (1, "recv"): 2, (1, "combine"): 2, (1, "send"): 2,
                                     (2, "recv"): 2})
            self.assertEqual(collections.Counter(event["ph"] for event in events)["f"], 4)

    def test_a_skipped_row_has_no_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            _, table = self.records("--collectives", "mpi_exscan", "--executor", "local", "--ranks", "2", "--trace",
                                    folder + "/x")
            self.assertIn("# no trace: nothing was timed", table)
            self.assertEqual(os.listdir(folder), [])

    def test_records_are_appended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            for _ in range(2):
                run("--executor", "local", "--collectives", "all_scan", *SMALL, "-J", path)
            with open(path) as file:
                self.assertEqual(len({json.loads(line)["run"] for line in file}), 2)

    def test_ratios_are_to_the_baseline_of_the_same_point(self):
        records, _ = self.records("--collectives", "ring_scan,ring_all_gather,two_shot", "--ranks", "2", "--baseline",
                                  "two_shot")
        self.assertEqual([r["name"] for r in records], ["two_shot", "ring_scan", "ring_all_gather"])
        self.assertAlmostEqual(records[0]["ratio"], 1)
        self.assertAlmostEqual(records[1]["ratio"], records[1]["median_seconds"] / records[0]["median_seconds"])
        self.assertIsNone(records[2]["ratio"])

    def test_a_baseline_that_cuts_blocks_is_its_fastest_to_those_that_do_not(self):
        records, _ = self.records("--collectives", "all_scan,ring_scan", "--ranks", "2", "--blocks", "1,4",
                                  "--baseline", "all_scan")
        fastest = min(r["median_seconds"] for r in records if r["name"] == "all_scan")
        self.assertAlmostEqual(records[-1]["ratio"], records[-1]["median_seconds"] / fastest)
        for r in records[:-1]:
            self.assertAlmostEqual(r["ratio"], 1)

    def test_memory_that_is_not_there_is_a_skipped_row(self):
        records, _ = self.records("--executor", "local", "--collectives", "ring_exchange", "--ranks", "4")
        self.assertNotIn("skipped", records[0])
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run("--executor", "local", "--collectives", "ring_exchange", "--ranks", "64", "--tokens", "1048576",
                        "--heads", "64", "-J", path)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                self.assertIn("of memory", json.loads(file.readline())["skipped"])


class Operators(unittest.TestCase):
    LAYER = ["--heads", "2", "--d-k", "4", "--d-v", "6", "--tokens", "20", "--chunk", "8", "-n", "3", "-w", "1"]

    def records(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run(*arguments, *self.LAYER, "-J", path, bench=OPERATOR_BENCH)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                return [json.loads(line) for line in file]

    def test_every_method_pass_and_mode(self):
        records = self.records("--pass", "all", "--mode", "all", "--ranks", "2,3")
        self.assertEqual({r["bench"] for r in records}, {"operator"})
        for r in records:
            if "skipped" in r:
                self.assertTrue(r["name"].startswith("ring_attention") and r["mode"] == "compute_only", r["name"])
                continue
            self.assertEqual((r["wrong"], len(r["seconds"])), (0, 3))
            self.assertLess(r["relative_error"], 2e-5)
            self.assertEqual((r["chunk"], r["groups"]), (8, 1))

    def test_the_ratio_is_to_local_and_the_hidden_share_to_the_other_modes(self):
        by_mode = {r["mode"]: r for r in self.records("--methods", "zeco,local", "--mode", "all", "--ranks", "2")
                   if r["name"] == "zeco"}
        overlapped = by_mode["overlapped"]
        self.assertIsNotNone(overlapped["ratio"])
        exposed, alone = (by_mode[mode]["median_seconds"] for mode in ("exposed", "compute_only"))
        if exposed > alone:
            self.assertAlmostEqual(overlapped["hidden"], (exposed - overlapped["median_seconds"]) / (exposed - alone))

    def test_another_scan_and_head_groups(self):
        records = self.records("--methods", "zeco", "--scan", "two_shot", "--groups", "2", "--ranks", "3")
        self.assertEqual((records[0]["scan"], records[0]["groups"], records[0]["wrong"]), ("two_shot", 2, 0))

    def test_bad_input(self):
        for words, said in ((["--methods", "zecco"], "did you mean 'zeco'?"), (["--gate", "soft"], "--gate"),
                            (["--scan", "ring_exchange"], "unknown scan"), (["--chunk", "0"], "--chunk")):
            ended = run(*words, bench=OPERATOR_BENCH)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(said, ended.stderr)


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
            return [json.loads(line) for line in file], ended.stdout

    def test_rows_say_that_they_are_simulated(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "1,2,8",
                                      "--collectives", "all_scan,ring_exchange", "--blocks", "1,4", *SMALL)
        rows = [line.split() for line in table.splitlines() if line.startswith("all_scan")]
        self.assertEqual([row[1:3] for row in rows], [["simulator", p] for p in ("1", "1", "2", "2", "8", "8")])
        self.assertIn("# simulator, 8 ranks on made up: ", table)
        self.assertIn("calibrated on nothing", table)
        self.assertEqual(len(records), 9)
        for r in records:
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
                                      "--blocks", "1", "-b", "64K", "-n", "1")
        exact, rounded = records
        self.assertEqual((exact["wire_dtype"], exact["relative_error"], exact["tolerance"]), ("f32", 0, 0))
        self.assertEqual((rounded["wire_dtype"], rounded["wrong"]), ("bf16", 0))
        self.assertGreater(rounded["relative_error"], 1e-4)
        self.assertLess(rounded["relative_error"], rounded["tolerance"])
        self.assertEqual(2 * rounded["sent_bytes"], exact["sent_bytes"])
        cells = [line.split()[-2:] for line in table.splitlines() if line.startswith("all_scan")]
        self.assertEqual(cells, [["-", "0"], [f"{rounded['relative_error']:.1e}", "0"]])

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
        self.assertEqual(sizes, {"verified_heads": 2, "verified_d_k": 32, "verified_d_v": 4, "verified_tokens": 8,
                                 "verified_blocks": 64, "verified_ranks": 8})
        self.assertEqual((records[0]["blocks"], records[0]["heads"]), (100, 32))

    def test_blocks_are_no_more_than_there_are_rows(self):
        for place in (["--executor", "local"], ["--executor", "simulator", "--topology", self.machine]):
            records, table = self.records(*place, "--ranks", "3", "--collectives", "all_scan", "--blocks", "100", *SMALL)
            self.assertEqual((records[-1]["blocks"], records[-1]["blocks_asked"]), (4, 100))
            row = next(line for line in table.splitlines() if line.startswith("all_scan"))
            self.assertEqual(row.split()[6], "4")

    def test_ranks_fill_the_nodes_of_the_machine(self):
        records, _ = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "2,8",
                                  "--collectives", "all_scan,hierarchical_scan", "--baseline", "all_scan", *SMALL)
        self.assertEqual([r["ranks_a_node"] for r in records], [0, 0, 4, 4])
        self.assertTrue(all(r["ratio"] for r in records))

    def test_operators_are_verified_at_another_size_and_say_so(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "8",
                                      "--methods", "zeco", "--tokens", "4096", "--dtype", "bf16", bench=OPERATOR_BENCH)
        head, row = [next(line for line in table.splitlines() if line.startswith(word)) for word in ("method", "zeco")]
        self.assertEqual(head.split()[-3:], ["verified", "error", "wrong"])
        self.assertEqual(row.split()[-3], "20")
        self.assertEqual((records[0]["verified_tokens"], records[0]["verified_chunk"]), (20, 8))
        self.assertEqual((records[0]["tokens"], records[0]["chunk"]), (4096, 64))
        self.assertEqual((records[0]["dtype"], records[0]["verified_dtype"]), ("bf16", "f32"))

    def test_a_native_cannot_be_simulated(self):
        records, table = self.records("--executor", "simulator", "--topology", self.machine, "--ranks", "2",
                                      "--collectives", "mpi_exscan", *SMALL)
        self.assertIn("mpi_exscan is a native", records[0]["skipped"])
        self.assertIn("skipped: mpi_exscan is a native", table)

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
        self.assertIn("calibrated: ", table)
        self.assertNotIn("extrapolated", records[-1])
        with open(path) as file:
            self.assertEqual(json.load(file)["calibration"]["most_ranks"], 2)

    def test_a_calibration_measures_kernels_that_only_some_ranks_run(self):
        path = self.folder.name + "/kernels.json"
        ended = run("--ranks", "2", "--methods", "ring_attention", "--tokens", "64", "--heads", "2", "-n", "2",
                    "--calibrate", path, bench=OPERATOR_BENCH)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(path) as file:
            kernels = json.load(file)["device"]["kernels"]
        self.assertIn("left_product_block", kernels)


class GoogleBenchmarkFlags(unittest.TestCase):
    def test_filter_and_list(self):
        ended = run("--ranks", "2", "--benchmark_list_tests=true", "--benchmark_filter=two_shot")
        self.assertEqual([line.split("/")[0] for line in ended.stdout.split()], ["two_shot"])

    def test_out_is_written_by_rank_0(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/x.json"
            ended = run("--ranks", "2", "--collectives", "all_scan", *SMALL, "--benchmark_out=" + path)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            with open(path) as file:
                self.assertEqual(json.load(file)["benchmarks"][0]["iterations"], 3)


class Answers(unittest.TestCase):
    def test_list_help_and_dry_run(self):
        self.assertIn("all_scan_by_hand", run("--list").stdout)
        self.assertIn("--benchmark_filter", run("--help").stdout)
        dry = run("--dry-run", "--ranks", "64", "--collectives", "ring_scan", "--print-schedule").stdout
        self.assertIn("rank 63 of 64", dry)


if __name__ == "__main__":
    unittest.main()
