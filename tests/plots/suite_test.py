# SPDX-License-Identifier: Apache-2.0
"""The suite of `./run bench` fits the machine, and the benches take each line; what launches leave, and how they end."""

import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from baton import suite
from plots.example import BENCHES, ROOT, command, run


def lines(program, cores=2, gpus=0):
    return list(suite.LINES[program](suite.Machine(cores, gpus)))


def value(line, flag):
    words = line.split()
    return words[words.index(flag) + 1]


@unittest.skipUnless(BENCHES, "no benches")
class DryRun(unittest.TestCase):
    """Every line of the suite, as the benches of this build take it."""

    def run_dry(self, program, line):
        topology = ROOT / "topologies/dgx-h100-32x8.json"  # in place of the one that calibrating makes
        line = re.sub(r"--calibrate \S+ ", "", line)  # which a dry run refuses, since it would measure nothing
        made = (str(suite.MACHINE), str(suite.GPU_CALIBRATION))
        words = [topology if word in made else word for word in line.split()]
        done = subprocess.run([BENCHES[program], *words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{program} {line}\n{done.stderr}")

    def runs_here(self, program, line):
        executors = subprocess.run([BENCHES[program], "--list"], capture_output=True, text=True, check=True).stdout
        asked = value(line, "--executor").split(",") if "--executor" in line else []
        return all(re.search(rf"^  {name} ", executors, re.MULTILINE) for name in asked)

    def test_lines_that_measure(self):
        for program in BENCHES:
            for cores, gpus in ((2, 0), (16, 0), (16, 1), (16, 2)):
                for line in lines(program, cores=cores, gpus=gpus):
                    if self.runs_here(program, line):
                        self.run_dry(program, line)

    def test_lines_that_calibrate_and_simulate(self):
        for cores in (2, 16):
            self.run_dry("operator_bench", suite.calibrating(suite.Machine(cores, 0)))
        for program in ("collective_bench", "operator_bench"):
            for gpus in (0, 1):
                self.run_dry(program, suite.simulated(program, suite.Machine(16, gpus)))


class Suite(unittest.TestCase):
    def test_ranks_of_an_exchange_fill_the_cores(self):
        self.assertEqual([value(line, "--ranks") for line in lines("collective_bench", cores=2)], ["2", "2"])
        self.assertEqual(value(lines("collective_bench", cores=12)[0], "--ranks"), "2,4,8")
        self.assertEqual([value(line, "--ranks") for line in lines("collective_bench", cores=40)],
                         ["2,4,8", "16,32", "32"])

    def test_ranks_of_a_layer_have_two_cores_each_where_there_are_four(self):
        self.assertEqual(value(lines("operator_bench", cores=16)[0], "--ranks"), "2,4,8")
        self.assertEqual([value(line, "--ranks") for line in lines("operator_bench", cores=2)], ["2", "2"])
        self.assertEqual([value(line, "--ranks") for line in lines("operator_bench", cores=4)], ["2", "2"])

    def test_a_model_takes_seconds(self):
        for cores, ranks in ((2, "2"), (8, "4"), (40, "8")):
            line, = lines("model_bench", cores=cores)
            self.assertEqual((value(line, "--ranks"), value(line, "--for")), (ranks, "10"))

    def test_processors_are_not_measured_beside_gpus(self):
        for gpus in (1, 2, 4):
            for program in ("collective_bench", "operator_bench", "model_bench"):
                for line in lines(program, cores=16, gpus=gpus):
                    self.assertIn(value(line, "--executor"), ("peer,nccl", "peer", "nccl"))

    def test_one_gpu_has_no_exchange_and_a_line_of_each_kind_of_attention(self):
        self.assertEqual(lines("collective_bench", cores=16, gpus=1), [])
        linear, softmax = lines("operator_bench", cores=16, gpus=1)
        self.assertEqual((value(linear, "--attention"), value(softmax, "--ranks")), ("linear,gdn,kda", "1"))

    def test_every_line_has_a_time_and_the_sum_is_said(self):
        for gpus, where in ((0, "16 cores"), (1, "1 GPU"), (2, "2 GPUs")):
            seconds = [int(value(line, "--for")) for program in ("collective_bench", "operator_bench", "model_bench")
                       for line in lines(program, cores=16, gpus=gpus)]
            total = sum(seconds) + suite.CALIBRATING_SECONDS  # tracing, calibrating and simulating
            self.assertRegex(suite.how_long(suite.Machine(16, gpus)), f"about {total // 60} min {total % 60} s .*, on {where}$")

    def test_no_line_writes_two_kinds_of_records_into_one_file(self):
        for line in (suite.simulated(program, suite.Machine(16, 0)) for program in ("collective_bench", "operator_bench")):
            self.assertIn("/simulated_", value(line, "-J"))
            self.assertIn("256", value(line, "--ranks"))

    def test_a_file_of_records_is_recognised_in_every_spelling(self):
        for words in ("-J mine", "-Jmine", "--json mine", "--json=mine"):
            self.assertTrue(suite.names_records(words.split()), words)
        self.assertFalse(suite.names_records(["--list"]))

    def test_a_question_has_three_launches_unless_it_says_how_many(self):
        for words in ("--help", "--launches 2", "--launches=2", "--for 9", "--trace t.json", "--executor simulator"):
            self.assertEqual(suite.in_launches(words.split()), words.split())
        self.assertEqual(suite.in_launches(["--ranks", "2"]), ["--ranks", "2", "--launches", "3"])

    def test_only_what_measures_leaves_records(self):
        for words, code in ((["--ranks", "2"], 0), (["--help"], 1), (["--ranks", "2", "--dry-run"], 1), (["-J", "mine"], 1)):
            self.assertEqual(run("suite", "leaves", *words).returncode, code, words)


# A bench that notes its arguments, and ends with the code of its third argument if it is one.
BENCH = """#!/bin/sh
echo "$*" >>"$0.launches"
trap 'exit 130' INT
case $1 in
  wait) echo waiting; sleep 20 >/dev/null 2>&1 & wait ;;
  [0-9]*) exit "$1" ;;
esac
"""


class Launches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bench = self.folder / suite.COLLECTIVE
        self.bench.write_text(BENCH, encoding="utf-8")
        self.bench.chmod(0o755)

    def outcome(self, *lines_of_bench):
        """The outcome after these lines, or what stopped them."""
        launcher = suite.Launcher(self.folder, "s")
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            try:
                launcher.launch_all(suite.COLLECTIVE, lines_of_bench)
            except suite.Stopped as stopped:
                return f"stopped {stopped.code}"
        return launcher.outcome

    def launched(self):
        return pathlib.Path(f"{self.bench}.launches").read_text(encoding="utf-8").splitlines()

    def test_a_launch_without_a_row_that_can_run_is_no_failure(self):
        for code in (0, 4, 5):
            self.assertEqual(self.outcome(f"{code} --launches 1", "6 --launches 1"), code)

    def test_a_launch_that_kept_nothing_stops_the_suite(self):
        self.assertEqual(self.outcome("2 --launches 1", "0 --launches 1"), "stopped 2")
        self.assertEqual(len(self.launched()), 1)

    def test_after_a_usage_error_nothing_speaks_of_what_was_measured(self):
        for code, wanted in ((1, "what it had measured is kept"), (2, "")):
            with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(suite.Stopped):
                suite.Launcher(self.folder, "s").launch(suite.COLLECTIVE, [str(code)])
            self.assertIn(wanted, errors.getvalue())
            self.assertEqual(bool(errors.getvalue()), bool(wanted))

    def test_three_launches_of_one_session_go_to_the_file_of_the_bench(self):
        self.outcome("0 --launches 1", "--ranks 2")
        self.assertEqual(self.launched(), [f"0 --launches 1 -J {suite.RESULTS}/collectives.jsonl --session s",
                                           f"--launches 3 --ranks 2 -J {suite.RESULTS}/collectives.jsonl --session s"])

    def test_an_interrupt_ends_the_bench_in_good_order_and_then_the_suite(self):
        words = command("suite", "--programs", self.folder, "--session", "s", "launch", suite.COLLECTIVE, "wait")
        with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as running:
            running.stdout.readline()  # the bench has begun
            time.sleep(0.2)
            os.killpg(running.pid, signal.SIGINT)
            _, errors = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130, errors)
        self.assertEqual(errors, "run: collective_bench ended with status 130; what it had measured is kept\n")


if __name__ == "__main__":
    unittest.main()
