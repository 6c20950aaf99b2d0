# SPDX-License-Identifier: Apache-2.0
"""The benches as their users meet them: python3 command_line_test.py COLLECTIVE_BENCH OPERATOR_BENCH"""

import collections
import json
import os
import pathlib
import tempfile
import unittest

from bad_input import BadInput
from benches import OPERATOR_BENCH, SMALL, TOPOLOGIES, OperatorRecords, mpirun, run
from drawn import drawn
from google_benchmark_flags import GoogleBenchmarkFlags
from simulated_rows import Simulator

__all__ = ["BadInput", "GoogleBenchmarkFlags", "Simulator"]  # unittest runs them too


class Runs(unittest.TestCase):
    def records(self, *arguments, code=0, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run(*arguments, *SMALL, "-J", path, **options)
            self.assertEqual(ended.returncode, code, ended.stderr)
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

    def test_launches_are_added_until_the_intervals_are_narrow(self):
        asked = ("--collectives", "all_scan", "--executor", "local", "--ranks", "2", "--stop-at")
        records, table = self.records(*asked, "1000")
        self.assertEqual([(r["launch"], r["launches"]) for r in records], [(1, 1), (2, 2), (3, 3)])
        self.assertIn("# After 3 launches every interval is within 1000 % of its time", table)
        records, table = self.records(*asked, "1e-9", "--launches", "4")
        self.assertEqual(len(records), 4)
        self.assertIn("gave up after 4 launches: the interval of", " ".join(table.split()))

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

    def test_maps_of_every_kind_are_verified_and_natives_of_scans_take_diagonal_ones(self):
        records, table = self.records("--collectives", "all", "--map", "all", "--ranks", "2", "--direction", "both")
        skipped = {(r["name"], r["map"]) for r in records if "skipped" in r}
        self.assertEqual(skipped, {(name, kind) for name in ("mpi_exscan", "mpi_allgather", "all_scan_by_hand")
                                   for kind in ("scalar", "affine")})
        self.assertIn("its native takes diagonal maps alone", " ".join(table.split()))
        verified = [r for r in records if "skipped" not in r]
        self.assertEqual({r["wrong"] for r in verified}, {0})
        for kind in ("scalar", "affine"):
            named = [r for r in verified if r.get("map") == kind]
            self.assertEqual({r["kind"] for r in named}, {"exclusive_scan", "all_gather", "reduce_scatter"})
            self.assertTrue(all(f"/map:{kind}/" in r["case"] for r in named))

    def test_a_native_away_from_home_is_no_row(self):
        records, table = self.records("--collectives", "all_scan,mpi_exscan", "--executor", "local", "--ranks", "2")
        self.assertEqual([r["name"] for r in records], ["all_scan"])
        self.assertNotIn("mpi_exscan", table)
        alone = run("--collectives", "mpi_exscan", "--executor", "local", "--ranks", "2")
        self.assertEqual((alone.returncode, alone.stderr.count("\n")), (2, 1))
        self.assertIn("mpi_exscan, which executor local does not run", alone.stderr)

    def test_a_table_fits_a_terminal_and_a_contest_has_its_fastest_row_at_the_top(self):
        for launches in ("1", "2"):
            records, table = self.records("--collectives", "all", "--executor", "local", "--ranks", "2,3", "--launches",
                                          launches)
            self.assertLessEqual(max(map(len, table.splitlines())), 100)
            kinds = {r["name"]: r["kind"] for r in records}
            rows = [line.split() for line in table.splitlines() if line.split()[:1] and line.split()[0] in kinds]
            self.assertEqual(len(rows), 2 * len(kinds))
            for ranks in ("2", "3"):
                for kind in set(kinds.values()):
                    medians = [float(row[3]) for row in rows if row[1] == ranks and kinds[row[0]] == kind]
                    self.assertEqual(medians, sorted(medians))
            self.assertEqual(sum("lowest" in row for row in rows), 2 * len(set(kinds.values())))

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
            _, table = self.records("--collectives", "all_scan", "--executor", "local", "--ranks", "2", "--cadence",
                                    "graph", "--trace", folder + "/x", code=6)
            self.assertIn("# no trace: nothing was timed", table)
            self.assertEqual(os.listdir(folder), [])

    def test_skipped_rows_alone_are_no_good_run(self):
        wanted = ["--collectives", "all_scan", "--ranks", "2", *SMALL, "--cadence"]
        for launcher in ((), mpirun(2)):
            alone = run(*wanted, "graph", launcher=launcher)
            self.assertEqual(alone.returncode, 6, alone.stderr)
            self.assertIn("baton: nothing was timed, since all rows were skipped: mpi records no graphs\n", alone.stderr)
            self.assertEqual(run(*wanted, "graph,isolated", launcher=launcher).returncode, 0)

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
            ended = run("--executor", "local", "--collectives", "ring_exchange", "--ranks", "64", "--tokens", "1M",
                        "--heads", "64", "-J", path)
            self.assertEqual(ended.returncode, 6, ended.stderr)
            self.assertRegex(ended.stderr, r"(?m)^baton: nothing was timed, since all rows were skipped: .* of memory")
            with open(path) as file:
                self.assertIn("of memory", json.loads(file.readline())["skipped"])


class Operators(OperatorRecords, unittest.TestCase):
    def test_every_method_pass_and_mode(self):
        main = ("zeco", "lasp1", "lasp2", "local")
        listed = run("--ranks", "2", "--benchmark_list_tests=true", bench=OPERATOR_BENCH).stdout
        methods = [*main, *drawn(sorted({case.split("/")[0] for case in listed.split()} - {*main}))]
        records = self.records("--methods", ",".join(methods), "--pass", "all", "--mode", "all", "--ranks", "2,3")
        self.assertEqual({r["name"] for r in records}, {*methods})
        self.assertEqual({r["bench"] for r in records}, {"operator"})
        for r in records:
            if "skipped" in r:
                self.assertNotIn(r["name"], main)
                self.assertTrue(r["mode"] == "compute_only" or " heads cannot be shared " in r["skipped"], r["skipped"])
                continue
            self.assertEqual((r["wrong"], len(r["seconds"])), (0, 3))
            self.assertLess(r["relative_error"], 2e-5)
            self.assertEqual((r["chunk"], r["groups"]), (8, 1))

    def test_the_ratio_is_to_local_and_the_hidden_share_to_the_other_modes(self):
        # Rounds of 20 tokens may not tell whether waiting takes longer; simulated ones always do.
        topology = str(pathlib.Path(__file__).resolve().parents[2] / "topologies/h200-4.json")
        by_mode = {r["mode"]: r for r in self.records("--methods", "zeco,local", "--mode", "all", "--ranks", "2",
                                                      "--executor", "simulator", "--topology", topology)
                   if r["name"] == "zeco"}
        overlapped = by_mode["overlapped"]
        self.assertIsNotNone(overlapped["ratio"])
        exposed, alone = (by_mode[mode]["median_seconds"] for mode in ("exposed", "compute_only"))
        self.assertGreater(exposed, alone)
        self.assertAlmostEqual(overlapped["hidden"], (exposed - overlapped["median_seconds"]) / (exposed - alone))

    def test_layers_with_a_delta_rule_are_contests_of_their_own(self):
        records = self.records("--attention", "linear,gdn,kda", "--methods", "zeco,zeco_corrected,ulysses,ring_attention",
                               "--pass", "all", "--ranks", "2")
        by_attention = collections.defaultdict(set)
        for r in records:
            if "skipped" not in r:
                by_attention[r["attention"], r["gate"]].add(r["name"])
                self.assertEqual(r["wrong"], 0)
                self.assertEqual(f"/{r['attention']}/" in r["case"], r["attention"] != "linear")
        self.assertEqual(by_attention, {("linear", "vector"): {"zeco", "ulysses", "ring_attention"},
                                        ("gdn", "scalar"): {"zeco", "zeco_corrected", "ulysses"},
                                        ("kda", "vector"): {"zeco", "zeco_corrected", "ulysses"}})
        refused = run("--attention", "gdn", "--methods", "zeco,ulysses_softmax", bench=OPERATOR_BENCH)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--attention is of linear attention, and the method 'ulysses_softmax' is not", refused.stderr)
        refused = run("--attention", "gdn,softmax", "--methods", "zeco", bench=OPERATOR_BENCH)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("softmax attention is chosen by its methods", refused.stderr)

    def test_another_scan_and_head_groups(self):
        records = self.records("--methods", "zeco", "--scan", "two_shot", "--groups", "2", "--ranks", "3")
        self.assertEqual((records[0]["scan"], records[0]["groups"], records[0]["wrong"]), ("two_shot", 2, 0))

    def test_a_public_suite_is_its_flags_and_later_and_earlier_ones_override_it(self):
        def asked(*words):
            with tempfile.TemporaryDirectory() as folder:
                ended = run(*words, "--executor", "simulator", "--topology", f"{TOPOLOGIES}/dgx-h100-8.json", "--ranks", "2",
                            "-J", f"{folder}/r.jsonl", bench=OPERATOR_BENCH)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                with open(f"{folder}/r.jsonl") as file:
                    return [{key: json.loads(line)[key] for key in (
                        "name", "pass", "mode", "heads", "kv_heads", "d_k", "d_v", "tokens", "dtype", "warmup", "rounds",
                        "median_seconds")} for line in file]
        both = ("--methods ulysses_softmax,ring_attention_zigzag,all_gather_kv_zigzag,usp_zigzag,double_ring_zigzag --heads 64 "
                "--kv-heads 8 --d-k 128 --d-v 128 --tokens 8192 --dtype bf16 --warmup 5 ")
        for name, differs in (("longca", "--pass forward,backward --rounds 15"), ("magi", "--pass all --rounds 20")):
            spelled = asked(*(both + differs).split())
            self.assertEqual(asked("--like", name), spelled)
        small = asked(*both.replace("8192", "64").split(), "--pass", "both", "--rounds", "20")
        self.assertEqual(asked("--like", "magi", "--tokens", "64", "--pass", "both"), small)
        self.assertEqual(asked("--tokens", "64", "--pass", "both", "--like", "magi"), small)
        self.assertEqual({(r["tokens"], r["kv_heads"], r["dtype"]) for r in small}, {(64, 8, "bf16")})

    def test_latent_keys(self):
        wanted = ["--mla", "6,2", "--heads", "4", "--tokens", "20", "-n", "3", "-w", "1"]
        linear, gathered, ulysses = self.records("--methods", "zeco,all_gather_kv,ulysses_softmax", "--ranks", "2", layer=wanted)
        for r in (gathered, ulysses):
            self.assertEqual((r["wrong"], r["latent"], r["kv_heads"], r["d_k"], r["d_v"]), (0, True, 1, 8, 6))
        self.assertEqual(gathered["sent_bytes"], 20 * 8 * (4 + 4), "keys, and their gradients")
        self.assertIn("latent", linear["skipped"])

    def test_bad_input(self):
        for words, said in ((["--like", "long"], "--like: 'long' is not one of longca, magi, zeco-table3"),
                            (["--methods", "zecco"], "did you mean 'zeco'?"), (["--gate", "soft"], "--gate-kind"),
                            (["--scan", "ring_exchange"], "unknown scan"),
                            (["--scan", "two_shot", "--methods", "local"], "--scan: none of these methods"), (["--chunk", "0"], "--chunk"),
                            (["--packed", "-1"], "--packed"),
                            (["--mla", "512"], "--mla needs two widths"),
                            (["--mla", "512,64", "--kv-heads", "2"], "--kv-heads excludes --mla")):
            ended = run(*words, bench=OPERATOR_BENCH)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(said, ended.stderr)


class Answers(unittest.TestCase):
    def test_list_help_and_dry_run(self):
        self.assertIn("all_scan_by_hand", run("--list").stdout)
        self.assertIn("--benchmark_filter", run("--help").stdout)
        dry = run("--dry-run", "--ranks", "64", "--collectives", "ring_scan", "--print-schedule").stdout
        self.assertIn("rank 63 of 64", dry)


if __name__ == "__main__":
    unittest.main()
