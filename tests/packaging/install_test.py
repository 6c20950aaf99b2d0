# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` leaves in a prefix works there: BUILD_FOLDER COLLECTIVE_BENCH."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, BENCH = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Classes of unittest end their folders after the last test, not with a block.
        cls.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.prefix = pathlib.Path(cls.folder.name) / "a prefix"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_installed(self, program, *words):
        """Runs it as a shell does that has the prefix in its PATH, in a folder without sources."""
        environment = {**os.environ, "PATH": f"{self.prefix}/bin:{os.environ['PATH']}"}
        return subprocess.run([program, *words], env=environment, cwd=self.folder.name, capture_output=True, text=True,
                              check=False)

    def test_programs_say_what_was_built(self):
        for program, installed in (("collective_bench", "collective_bench"), ("operator_bench", "operator_bench"),
                                   ("model_bench", "model_bench"), ("doctor_readings", "doctor_readings")):
            if not (pathlib.Path(BENCH).parent / program).exists():  # without OpenBLAS there is no model_bench
                continue
            built = subprocess.run([pathlib.Path(BENCH).parent / program, "--version"], check=True, capture_output=True,
                                   text=True).stdout
            self.assertRegex(built, r"^baton \d+\.\d+\.\d+, commit \S+\n$")
            self.assertEqual(self.run_installed(installed, "--version").stdout, built, program)
        self.assertEqual(self.run_installed("baton", "doctor", "--version").stdout, built)  # whose program was the last

    @unittest.skipUnless((pathlib.Path(BENCH).parent / "model_bench").exists(), "no OpenBLAS, so no model_bench")
    def test_models_are_found_beside_the_program(self):
        self.assertEqual({path.name for path in (self.prefix / "share/baton/models").iterdir()},
                         {path.name for path in (ROOT / "sp_methods/models").glob("*.json")})
        run = self.run_installed("model_bench", "--executor", "simulator", "--topology",
                                 self.prefix / "share/baton/topologies/dgx-h100-8.json", "--model", "gla-1b", "--ranks", "2",
                                 "--layers", "2", "--tokens", "512", "--methods", "zeco,lasp2", "-J", "models.jsonl")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        answer = self.run_installed("baton", "report", "models.jsonl")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(self.run_installed("baton", "compare", "models.jsonl", "models.jsonl").returncode, 0)

    def test_machines_are_simulated_and_records_answered(self):
        topology = self.prefix / "share/baton/topologies/dgx-h100-8.json"
        run = self.run_installed("collective_bench", "--executor", "simulator", "--topology", topology, "--ranks", "8",
                                 "--collectives", "all_scan,two_shot", "-J", "records.jsonl")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        answer = self.run_installed("baton", "report", "records.jsonl")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("8 ranks, simulated on dgx-h100-8: a tie of two_shot", " ".join(answer.stdout.split()))
        same = self.run_installed("baton", "compare", "records.jsonl", "records.jsonl")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)

    def test_advice_uses_the_installed_benches(self):
        advice = self.run_installed("baton", "advise", "--topology", self.prefix / "share/baton/topologies/dgx-h100-8.json",
                                    "--tokens", "1K", "--heads", "2", "--ranks", "2")
        self.assertEqual(advice.returncode, 0, advice.stderr)

    def test_unknown_commands_are_refused(self):
        run = self.run_installed("baton", "reprot")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("unknown command 'reprot'", run.stderr)

    def test_documents_come_along(self):
        for document in ("README.md", "LICENSE", "docs/metrics.md"):
            self.assertTrue((self.prefix / "share/doc/baton" / document).is_file(), document)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
