# SPDX-License-Identifier: Apache-2.0
"""Launches in turns, of benches that write made-up records; and the check of compare on a machine."""

import contextlib
import io
import json
import subprocess
import sys
import unittest
from unittest import mock

from baton import cases, program
from baton.compare import commits, pairing, selfcheck
from plots.compare.example import InFolder, record
from plots.example import ROOT, run

# A bench: appends its record, with a run of its own, to the file of its last argument, and its name to a diary.
BENCH = """#!{python}
import json, os, random, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "diary"), "a") as file:
    file.write(os.path.basename(__file__))
made = json.loads({records!r})
with open(sys.argv[-1], "a") as file:
    for record in made:
        noise = random.gauss(1, 0.005)
        seconds = [noise * one for one in record["seconds"]]
        file.write(json.dumps({{**record, "run": str(random.random()), "seconds": seconds}}) + chr(10))
sys.exit({status})
"""


class Launches(InFolder):
    def bench(self, name, *records, status=0):
        path = self.folder / name
        text = "[" + ",".join(map(str, map(json.dumps, records))) + "]"
        path.write_text(BENCH.format(python=sys.executable, records=text, status=status), encoding="utf-8")
        path.chmod(0o755)
        return path

    def alternate(self, a, b, launches):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            files = commits.alternate([a, b], ["--ranks", "2"], launches, self.folder / "session")
        return [cases.read(file) for file in files], said.getvalue()

    def test_launches_run_in_turns_and_are_paired(self):
        (a, b), _ = self.alternate(self.bench("A", record()), self.bench("B", record()), 4)
        self.assertEqual((self.folder / "diary").read_text(encoding="utf-8"), "ABBAABBA")
        (name,) = a.cases
        estimate = pairing.pair(a, b, name).estimate
        self.assertEqual((estimate.paired, estimate.freedom), (True, 3))

    def test_the_first_word_names_the_bench(self):
        for words, program in ((["operator", "-n", "3"], "operator_bench"), (["model", "-n", "3"], "model_bench"),
                               (["-n", "3"], "collective_bench")):
            self.assertEqual(commits.program_of(words), (program, ["-n", "3"]))

    def test_a_launch_that_fails_is_said_and_its_records_count(self):
        sides, said = self.alternate(self.bench("A", record()), self.bench("B", record(wrong=1), status=4), 2)
        self.assertIn("ended with status 4", said)
        self.assertEqual([case.state for side in sides for case in side.cases.values()], ["timed", "wrong"])

    def test_a_launch_without_records_ends_it(self):
        with self.assertRaisesRegex(cases.Refused, "ended with status 2"):
            self.alternate(self.bench("A", record()), self.bench("B", record(), status=2), 2)
        with self.assertRaisesRegex(cases.Refused, "ended with status 0"):
            self.alternate(self.bench("A"), self.bench("B"), 2)

    def test_the_end_of_a_failed_build_is_reported_line_by_line(self):
        failed = subprocess.CompletedProcess([], 1, "first\nsecond\n", "third\n")
        said = io.StringIO()
        with mock.patch.object(subprocess, "run", return_value=failed), contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            program.run("compare", lambda: commits.build(ROOT, "cpu", "collective_bench"))
        self.assertEqual(said.getvalue().splitlines()[1:], [f"compare: cmake --preset cpu failed in {ROOT}:", "first", "second", "third"])

    def test_the_check_counts_intervals_and_verdicts(self):
        twins = [record("all_scan"), record("all_scan_twin")]
        fast = self.bench("fast", *twins)
        slow = self.bench("slow", record("all_scan", seconds=110e-6), twins[1])
        done = run("selfcheck", fast, "--slowed", slow, "--twins", "all_scan", "all_scan_twin", "--pairs", "2",
                   "--comparisons", "1", "--compared-launches", "6", "--", "--ranks", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^A/A, intervals +2  \d \(")
        self.assertRegex(lines[1], r"^A/A, comparisons +1  0 with something slower; cases: ")
        self.assertRegex(lines[2], r"^A/B, comparisons +1  1 with something slower \(1 in all_scan\)")

    def test_cycles_stand_in_for_twins(self):
        one = [record(cycle=cycle, seconds=seconds) for cycle, seconds in ((1, 1e-4), (2, 2e-4))]
        ((_, ratio),) = selfcheck.log_ratios(one, None).items()
        self.assertAlmostEqual(ratio, 0.6931, places=4)


if __name__ == "__main__":
    unittest.main()
