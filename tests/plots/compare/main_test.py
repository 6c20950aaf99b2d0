# SPDX-License-Identifier: Apache-2.0
"""`./run compare A B` as users meet it: what it prints, how it ends, what it refuses."""

import json
import os
import shlex
import signal
import subprocess
import unittest

from plots.compare.example import InFolder, launches, record, simulated, skipped
from plots.example import ROOT, command

STEADY = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0)
SLOW = [1.05 * one for one in STEADY]


class Output(InFolder):
    def test_equal_sides_end_with_0(self):
        done = self.compare(launches(STEADY), launches(STEADY, run="b"))
        self.assertEqual((done.returncode, self.verdicts(done)), (0, ["same"]), done.stderr)
        self.assertIn("# 1 cases: 1 same; geometric mean of B / A 1.000", done.stdout)
        self.assertIn("did not run in turns", done.stdout)

    def test_worst_first_one_line_a_case_of_at_most_100_columns(self):
        a = [one for name in ("all_scan", "ring_scan", "two_shot") for one in launches(STEADY, name=name, ranks=1234)]
        b = launches(SLOW, run="b", name="ring_scan", ranks=1234) + launches(STEADY, run="b", ranks=1234)
        done = self.compare(a, b)
        self.assertEqual((done.returncode, self.verdicts(done)), (5, ["missing", "slower", "same"]), done.stderr)
        lines = [line for line in done.stdout.splitlines() if not line.startswith(("# A:", "# B:"))]
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertIn("# all cases: mpi/ranks:1234/exclusive_scan/forward/isolated/blocks:auto", done.stdout)

    def test_names_that_do_not_fit_are_not_cut(self):
        long = "a_collective_of_an_unusually_long_name"
        a = [one for ranks in (2, 256) for tokens in (1, 10) for one in launches(
            STEADY, name=long, ranks=ranks, case=f"{long}/mpi/ranks:{ranks}/tokens:{tokens}/isolated/blocks:auto")]
        rows = [line.split()[-1] for line in self.compare(a, a).stdout.splitlines() if line.startswith("same")]
        self.assertEqual(rows, [f"{long}/P={ranks}/T={tokens}" for ranks in (2, 256) for tokens in (1, 10)])

    def test_rows_of_committed_records_are_distinguished(self):
        place = ROOT / "results/two-cores"
        done = self.run_on(place, place)
        verdicts, names = self.verdicts(done), [line[69:] for line in done.stdout.splitlines() if line[:1] not in "# "]
        names.remove("case")
        self.assertEqual(len(set(names)), len(verdicts), names)
        self.assertGreater(len(names), 100)
        self.assertFalse([name for name in names if ".." in name])

    def test_simulated_rows_on_unlike_calibrations_are_no_verdict(self):
        def rows(alpha, stands_on, factor=1.0):
            return [simulated(name, seconds=1e-4 * factor, alpha_seconds=alpha, bound_seconds=1e-5 * factor, stands_on=stands_on)
                    for name in ("all_scan", "two_shot")]
        line = "# not compared: 2 simulated rows, on unlike calibrations"
        path = self.folder / "out.json"
        for other, moved in ((rows(2e-6, "noon", 2.5), " (bound 10 -> 25 us)"), (rows(1e-6, "night", 2.5), " (bound 10 -> 25 us)"),
                             (rows(1e-6, "night"), "")):
            done = self.compare(launches(STEADY) + rows(1e-6, "noon"), launches(STEADY, run="b") + other, "--json", path)
            self.assertEqual((done.returncode, self.verdicts(done)), (0, ["same"]), done.stderr)
            self.assertEqual([row for row in done.stdout.splitlines() if "not compared" in row], [line + moved])
            self.assertEqual(len(json.loads(path.read_text(encoding="utf-8"))["not_compared"]), 2)
            alone = self.compare(rows(1e-6, "noon"), other)
            self.assertEqual((alone.returncode, alone.stdout), (2, ""))
            self.assertIn("and there is nothing else to compare", alone.stderr)

    def test_simulated_rows_on_one_calibration_have_a_verdict(self):
        def rows(seconds, **stands_on):
            return [simulated(seconds=seconds, alpha_seconds=1e-6, **stands_on)]
        for a, b in (({}, {}), ({"stands_on": "noon"}, {"stands_on": "noon"}), ({}, {"stands_on": "noon"})):
            done = self.compare(rows(1e-4, **a), rows(2e-4, **b))
            self.assertEqual((done.returncode, self.verdicts(done)), (5, ["slower"]), done.stderr)
            self.assertNotIn("not compared", done.stdout)

    def test_a_failed_row_is_wrong_and_no_other_condition(self):
        failed = {key: record(run="b")[key] for key in record() if key != "seconds"}
        done = self.compare(launches(STEADY), [{**failed, "failed": "signal 9", "rounds": 9}])
        self.assertEqual((done.returncode, self.verdicts(done)), (5, ["wrong"]), done.stderr)
        self.assertIn("failed: signal 9", done.stdout)

    def test_cannot_tell_ends_with_6(self):
        done = self.compare([record()], [record(run="b")])
        self.assertEqual((done.returncode, self.verdicts(done)), (6, ["cannot tell"]), done.stderr)
        self.assertIn("# exit code 6: nothing is worse, but", done.stdout)

    def test_json_and_markdown(self):
        path = self.folder / "out.json"
        done = self.compare(launches(STEADY), launches(SLOW, run="b", hops=2), "--markdown", "--json", path)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("| :red_circle: slower | 1.050 |", done.stdout)
        self.assertIn("hops 1 -> 2", done.stdout)
        found = json.loads(path.read_text(encoding="utf-8"))
        (case,) = found["cases"]
        self.assertEqual((found["exit_code"], case["verdict"], case["launches"]), (5, "slower", [6, 6]))
        self.assertAlmostEqual(case["ratio"], 1.05, places=6)

    def test_folders_hold_files_of_records(self):
        for side, factors in (("a", STEADY), ("b", SLOW)):
            (self.folder / side).mkdir()
            for number, factor in enumerate(factors):
                self.write(f"{side}/{number}.jsonl", launches([factor], run=f"{side}{number}"))
        self.assertEqual(self.run_on(self.folder / "a", self.folder / "b").returncode, 5)

    def test_a_torn_last_line_is_said_and_left_out(self):
        a, b = self.write("a.jsonl", launches(STEADY)), self.write("b.jsonl", launches(STEADY, run="b"))
        b.write_text(b.read_text(encoding="utf-8")[:-40], encoding="utf-8")
        done = self.run_on(a, b)
        self.assertEqual((done.returncode, self.verdicts(done)), (0, ["same"]))
        self.assertIn("6+5", done.stdout)
        self.assertIn("b.jsonl:6:", done.stderr)


class Refusals(InFolder):
    def assert_refused(self, done, *said):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        for text in said:
            self.assertIn(text, done.stderr)

    def test_each_difference_is_named_and_can_be_allowed(self):
        here, there = ({"cpu": "one", "host": "h", "build": "Release"}, {"cpu": "other", "host": "h", "build": "Debug"})
        a, b = launches(STEADY, machine=here), launches(STEADY, run="b", machine=there)
        self.assert_refused(self.compare(a, b), "build: A Release, B Debug", "cpu: A one, B other")
        self.assert_refused(self.compare(a, b, "--across", "cpu"), "build: A Release")
        done = self.compare(a, b, "--across", "cpu", "--across", "build")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# in spite of: cpu: A one, B other", done.stdout)
        self.assert_refused(self.compare(a, a, "--across", "cpu"), "differ in nothing")

    def test_each_difference_has_a_line_of_its_own(self):
        done = self.compare([record(machine={"cpu": "one"}, warmup=3)], [record(machine={"cpu": "an\\nother"}, warmup=4)])
        self.assertEqual(done.stderr.splitlines(), [
            "compare: A and B must not be compared:", "  cpu: A one, B an\\nother (all_scan)", "  warmup: A 3, B 4 (all_scan)",
            "  (--across cpu compares in spite of the first)"])

    def test_a_line_break_in_a_name_ends_no_line(self):
        done = self.run_on(self.folder / "a\nb", self.folder / "a\nb")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("a\\nb", done.stderr)

    def test_devices_their_clocks_libraries_and_the_environment(self):
        def side(run, clock=1980.0, variables=None, **device):
            machine = {"cpu": "c", "environment": variables or {}}
            return launches(STEADY, run=run, machine=machine, device={"gpu": "H", "driver": "1", "nccl": "2", **device},
                            device_after={"sm_clock_mhz": [clock] * 4}, alpha_seconds=1e-6, beta_bytes_per_second=1e9)
        a = side("a")
        self.assertEqual(self.compare(a, side("b", clock=1965.0)).returncode, 0, "a step of the clock")
        self.assert_refused(self.compare(a, side("b", clock=1700.0)), "clocks: A 1980 MHz, B 1700 MHz")
        self.assert_refused(self.compare(a, side("b", driver="2")), "driver: A 1, B 2")
        self.assert_refused(self.compare(a, side("b", nccl="3")), "nccl: A 2, B 3")
        self.assert_refused(self.compare(a, side("b", variables={"NCCL_ALGO": "Ring"})), "NCCL_ALGO: A not set, B Ring")

    def test_what_was_in_force_of_files_and_of_the_system(self):
        def side(run, **settings):
            return launches(STEADY, run=run, machine={"cpu": "c", "settings": {"btl": "^uct", "dev_shm": "8192 MiB", **settings}})
        a = side("a")
        self.assertEqual(self.compare(a, side("b")).returncode, 0)
        for key, value in (("btl", "self,tcp"), ("dev_shm", "4 MiB"), ("transparent_huge_pages", "always")):
            done = self.compare(a, side("b", **{key: value}))
            self.assert_refused(done, f"{key}: A ", f", B {value}")
            self.assertEqual(self.compare(a, side("b", **{key: value}), "--across", key).returncode, 0)
        older = launches(STEADY, run="b", machine={"cpu": "c"})
        self.assertEqual(self.compare(a, older).returncode, 0, "an old record says nothing of it")

    def test_what_carried_messages_on_a_host(self):
        def side(run, **transport):
            return launches(STEADY, run=run, machine={"cpu": "c"}, **transport)
        shared = side("a", transport="shared memory, copied once by cma")
        self.assertEqual(self.compare(shared, side("b", transport="shared memory, copied once by cma")).returncode, 0)
        self.assert_refused(self.compare(shared, side("b", transport="lo")), "transport: A shared memory, copied once by cma, B lo")
        self.assertEqual(self.compare(shared, side("b")).returncode, 0, "an old record says nothing of it")

    def test_variables_that_move_no_message_are_named(self):
        def side(run, **variables):
            return launches(STEADY, run=run, machine={"cpu": "c", "environment": variables})
        done = self.compare(side("a"), side("b", PMIX_MCA_gds="hash"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# in spite of: PMIX_MCA_gds: A not set, B hash", done.stdout)
        self.assert_refused(self.compare(side("a"), side("b", PMIX_MCA_gds="hash", GLIBC_TUNABLES="x")),
                            "GLIBC_TUNABLES: A not set, B x", "--across GLIBC_TUNABLES")

    def test_builds_that_no_commit_tells_are_named(self):
        def said(commit, runs=("a",)):
            records = [one for run in runs for one in launches(STEADY, run=run, commit=commit)]
            done = self.compare(records, launches(STEADY, run="z", commit="abc-dirty-12345678"))
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line for line in done.stdout.splitlines() if "is not known" in line]
        self.assertEqual(said("abc"), [])
        self.assertEqual(said("unknown"), ["# the build of A is not known: nothing told its commit"])
        self.assertEqual(said("abc-dirty", "ab"), ["# the build of A is not known: files of abc had changed, in 2 runs, "
                                                   "each of which may be of another"])

    def test_ranks_on_other_hosts(self):
        spread = launches(STEADY, run="b", hosts={"placement": "4 hosts of 2"})
        self.assert_refused(self.compare(launches(STEADY), spread), "placement: A 1 host, B 4 hosts of 2")

    def test_other_rounds_and_schemas(self):
        self.assert_refused(self.compare([record()], [record(rounds=50)]), "rounds: A 3, B 50")
        self.assert_refused(self.compare([record()], [record(schema=2)]), "schema: expected 1, found 2")

    def test_machines_that_are_mixed_within_a_side(self):
        mixed = launches(STEADY[:3], machine={"cpu": "one"}) + launches(STEADY[:3], run="x", machine={"cpu": "other"})
        self.assert_refused(self.compare(mixed, mixed), "cpu: A one and other, B one and other")

    def test_records_that_join_with_nothing(self):
        old = record(ranks_per_node=2)  # as asked, or as hosts had it?
        del old["case"]
        self.assert_refused(self.compare([old], [record()]), "have no key 'case'")
        self.assert_refused(self.compare([], [record()]), "no records of this suite")
        self.assert_refused(self.compare([skipped("why")], [skipped("why")]), "nothing to compare")
        empty = self.folder / "empty"
        empty.mkdir()
        self.assert_refused(self.run_on(empty, empty), "no *.jsonl in this folder")
        self.assert_refused(self.run_on(self.folder / "none.jsonl", self.folder / "none.jsonl"), "No such file")

    def test_outputs_that_cannot_be_written(self):
        """Also of the report, which ends in the same way."""
        path = self.write("a.jsonl", launches(STEADY))
        for words in (["compare", path, path], ["report", path]):
            typed = shlex.join(command(*words))
            for place, said in (("/dev/full", "output: No space left on device"), ("&-", "output: the standard output is closed")):
                done = subprocess.run(["bash", "-c", f"{typed} >{place}"], cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (2, f"{words[0]}: {said}\n"))

    def test_a_reader_that_leaves_is_no_failure(self):
        path = self.write("a.jsonl", launches(STEADY))
        gone, into = os.pipe()
        os.close(gone)
        done = subprocess.run(command("compare", path, path), stdout=into, stderr=subprocess.PIPE, text=True,
                              check=False)
        os.close(into)
        self.assertEqual((done.returncode, done.stderr), (128 + signal.SIGPIPE, ""))

    def test_what_makes_no_command(self):
        for words in (["a"], ["a", "b", "--margin", "0"], ["a", "b", "--unknown"], ["--commits", "X"],
                      ["--commits", "no-such-commit", "."], ["--gate"]):
            self.assert_refused(self.run_on(*words))


if __name__ == "__main__":
    unittest.main()
