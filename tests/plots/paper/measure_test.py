# SPDX-License-Identifier: Apache-2.0
"""What is measured of the tables on each machine: lines that the benches take, at the size that fits, and on again."""

import io
import json
import subprocess
import unittest
from contextlib import chdir, redirect_stdout
from unittest import mock

from baton import results, suite
from baton.paper import measure, settings
from plots.example import BENCHES, InFolder

GPUS = {number: [line.arguments for line in measure.on_gpus(settings.load(settings.table(number))["bench"], 1)]
        for number in measure.TABLES}


class Recorded:
    """A launcher that keeps what it is asked for; a probe takes as long as its tokens say."""

    def __init__(self, seconds_a_token):
        self.seconds_a_token, self.programs, self.lines = seconds_a_token, mock.MagicMock(), []

    def launch_all(self, bench, lines):
        self.lines += [(bench, line) for line in lines]

    def logged(self, _name, _bench, line):
        words = line.split()
        tokens = int(words[words.index("--tokens") + 1])
        record = {"tokens": tokens, "median_seconds": tokens * self.seconds_a_token}
        with open(words[-1], "w", encoding="utf-8") as file:
            file.write(json.dumps(record))


class Measured(InFolder):
    def measured(self, tables, seconds_a_token=1e-4, cores=2, gpus=0):
        """The lines that are launched, and what is said."""
        launcher, said = Recorded(seconds_a_token), io.StringIO()
        with chdir(self.folder), redirect_stdout(said), mock.patch.object(results, "load", self.load), mock.patch.object(
                results, "why_no_time", lambda record: None):
            suite.RESULTS.mkdir(parents=True, exist_ok=True)
            measure.run(launcher, suite.Machine(cores, gpus), tables)
        return launcher.lines, said.getvalue()

    @staticmethod
    def load(paths):
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def test_the_most_tokens_that_fit_are_measured_and_named(self):
        lines, said = self.measured("2,3")
        self.assertEqual([bench for bench, _ in lines], ["collective_bench", "operator_bench"])
        # 880 rounds of 25.6 ms in each of three launches are 68 s, and twice the tokens would be 135.
        self.assertIn("--like zeco-table3 --ranks 2 --tokens 256 --launches 3", lines[1][1])
        self.assertIn("table 3: 256 tokens a rank of 16384, the most that fit into 90 s", said)

    def test_a_fast_machine_has_the_tables_size(self):
        lines, said = self.measured("3", seconds_a_token=1e-9)
        self.assertIn("--tokens 16384 ", lines[0][1])
        self.assertNotIn("the most that fit", said)

    def test_tables_that_shrink_to_one_size_are_measured_once(self):
        lines, said = self.measured("3,4,5,6")
        self.assertEqual(len(lines), 2)
        self.assertIn("table 4 with 256 tokens a rank, which is what fits, is table 3", said)
        self.assertIn("--layers 1", lines[1][1])

    def test_a_later_run_goes_on_at_the_same_size(self):
        with chdir(self.folder):
            suite.RESULTS.mkdir(parents=True)
            measure.records_of(3).write_text(json.dumps({"tokens": 512}), encoding="utf-8")
        lines, _ = self.measured("3")
        self.assertIn("--tokens 512 ", lines[0][1])
        self.assertTrue(lines[0][1].endswith(f"-J {measure.records_of(3)} --resume {measure.records_of(3)}"))

    def test_other_tables_are_refused(self):
        with self.assertRaisesRegex(results.ResultsError, "unknown 7, x; there are 2,3,4,5,6"):
            self.measured("2,7,x")

    def test_one_gpu_has_no_exchange(self):
        self.assertEqual(GPUS[2], [])
        lines, said = self.measured("2,3,6", gpus=1)
        self.assertIn("table 2 needs more than one GPU", said)
        self.assertTrue(all("--ranks 1" in line for _, line in lines))
        self.assertTrue(all("--tokens" not in line for _, line in lines), "the settings' own")

    @unittest.skipUnless(BENCHES, "no benches")
    def test_the_benches_take_the_lines_of_gpus(self):
        for number, lines in GPUS.items():
            bench = settings.load(settings.table(number))["bench"]
            for line in lines if bench in BENCHES else []:
                here = line.replace("--executor nccl", "--executor mpi").split()
                done = subprocess.run([BENCHES[bench], "--like", settings.table(number), *here, "--dry-run"],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
