# SPDX-License-Identifier: Apache-2.0
"""The suite of `./run bench` fits the machine: what it would run on some cores and GPUs, and the benches take each line.

BATON_BENCHES names the benches, separated by colons."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def call(command, cores=2, gpus=0):
    """Runs a command with the functions of cmake/measure.sh and returns what it prints."""
    script = f"results=results/local; log_dir=log; benches=(collective_bench operator_bench); " \
             f"source cmake/measure.sh; cores={cores}; gpus={gpus}; {command}"
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.strip()


def lines(program, **machine):
    return call(f"suite_of_{program}", **machine).splitlines()


def value(line, flag):
    words = line.split()
    return words[words.index(flag) + 1]


BENCHES = {pathlib.Path(path).name: path for path in os.environ.get("BATON_BENCHES", "").split(":") if path}


@unittest.skipUnless(BENCHES and shutil.which("bash"), "no benches or no bash")
class DryRun(unittest.TestCase):
    """Every line of the suite, as the benches of this build take it."""

    def run_dry(self, program, line):
        topology = ROOT / "topologies/dgx-h100-32x8.json"  # in place of the one that calibrating makes
        line = re.sub(r"--calibrate \S+ ", "", line)  # which a dry run refuses, since it would measure nothing
        words = [topology if word == "results/local/machine.json" else word for word in line.split()]
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
            self.run_dry("operator_bench", call("calibrating", cores=cores))
        for program in ("collective_bench", "operator_bench"):
            self.run_dry(program, call(f"simulated {program}"))
        self.run_dry("operator_bench", call("simulated_gpus").replace("results/local/gpu_calibration.json",
                                                                      "results/local/machine.json"))


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class Suite(unittest.TestCase):
    def test_ranks_of_an_exchange_fill_the_cores(self):
        self.assertEqual([value(line, "--ranks") for line in lines("collective_bench", cores=2)], ["2", "2"])
        self.assertEqual(value(lines("collective_bench", cores=12)[0], "--ranks"), "2,4,8")
        self.assertEqual([value(line, "--ranks") for line in lines("collective_bench", cores=40)],
                         ["2,4,8", "16,32", "32"])

    def test_ranks_of_a_layer_have_two_cores_each_where_there_are_four(self):
        self.assertEqual(value(lines("operator_bench", cores=16)[0], "--ranks"), "2,4,8")
        self.assertEqual([value(line, "--ranks") for line in lines("operator_bench", cores=2)], ["2"])
        self.assertEqual([value(line, "--ranks") for line in lines("operator_bench", cores=4)], ["2", "2"])

    def test_a_model_takes_ten_seconds_and_has_a_file_of_its_own(self):
        for cores, ranks in ((2, "2"), (8, "4"), (40, "8")):
            line, = lines("model_bench", cores=cores)
            self.assertEqual((value(line, "--ranks"), value(line, "--for")), (ranks, "10"))
            self.assertEqual(value(line, "-J"), "results/local/models.jsonl")

    def test_gpus_come_first_and_have_files_of_their_own(self):
        for program, gpus, executor in (("collective_bench", 2, "peer,nccl"), ("operator_bench", 4, "peer"),
                                        ("operator_bench", 1, "nccl")):
            first = lines(program, cores=16, gpus=gpus)[0]
            self.assertEqual(value(first, "--executor"), executor)
            self.assertTrue(value(first, "-J").startswith("results/local/gpu_"), first)

    def test_one_gpu_has_no_exchange(self):
        self.assertNotIn("nccl", " ".join(lines("collective_bench", cores=16, gpus=1)))

    def test_every_line_has_a_time_and_the_sum_is_said(self):
        for gpus in (0, 1, 2):
            machine = {"cores": 16, "gpus": gpus}
            seconds = [int(value(line, "--for")) for program in ("collective_bench", "operator_bench", "model_bench")
                       for line in lines(program, **machine)]
            total = sum(seconds) + (60 if gpus else 30)  # tracing, calibrating and simulating: also of GPUs
            self.assertIn(f"about {total // 60} min {total % 60} s", call("say_how_long", **machine))

    def test_no_line_writes_two_kinds_of_records_into_one_file(self):
        simulated = [call(f"simulated {program}") for program in ("collective_bench", "operator_bench")]
        for line in simulated:
            self.assertIn("/simulated_", value(line, "-J"))
            self.assertIn("256", value(line, "--ranks"))

    def test_a_launch_without_a_row_that_can_run_is_no_failure(self):
        ends = 'launch() { shift 3; outcome=$1; }; outcome=0; launch_all any "{} --launches 1" "6 --launches 1"; echo $outcome'
        for code in "06245":
            self.assertEqual(call(ends.replace("{}", code))[-1], "0" if code == "6" else code)

    def test_a_file_of_records_is_recognised_in_every_spelling(self):
        for words in ("-J mine", "-Jmine", "--json mine", "--json=mine"):
            self.assertEqual(call(f"names_records {words} && echo yes"), "yes", words)
        self.assertEqual(call("names_records --list || echo no"), "no")


if __name__ == "__main__":
    unittest.main()
