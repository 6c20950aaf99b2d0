# SPDX-License-Identifier: Apache-2.0
"""Input that the benches must refuse; run by command_line_test.py."""

import json
import os
import tempfile
import unittest

from benches import SMALL, TOPOLOGIES, machine_text, mpirun, run


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
            self.refuse(*one, "--trace", folder + "/none/x", words="--trace: cannot write")
            self.refuse(*one, "--trace", folder + "/x", "--dry-run", words="--dry-run excludes --trace")
            self.refuse(*one, "--calibrate", folder + "/x", "--dry-run", words="nothing to --calibrate")
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_of_records_is_no_place_for_what_replaces_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path, text = os.path.join(folder, "records"), '{"schema": 1, "bench": "collective"}\n'
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            one = ["--collectives", "all_scan", "--ranks", "2", *SMALL]
            for flag in ("--trace", "--calibrate"):
                self.refuse(*one, flag, path, words=f"{flag}: '{path}' has records, which would be lost")
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)

    def test_records_that_cannot_be_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, why in (("none", "No such file"), (300 * "x", "File name too long")):
                self.refuse("--resume", os.path.join(folder, name), words=f"--resume: cannot read '{folder}")
                self.refuse("--resume", os.path.join(folder, name), words=why)

    def test_machines_that_cannot_be(self):
        good = json.loads(machine_text())
        del good["device"]["copy"]["bytes_per_second"]
        missing = json.dumps(good)
        for text, words in ((missing, "device.copy.bytes_per_second: missing"),
                            (machine_text(bytes_per_second=0), "links.intra_node.bytes_per_second: expected a number"),
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
            self.refuse_alone("--calibrate", both, "-J", both, "--ranks", "2", words="--calibrate and --json name the same file")

    def test_an_export_destroys_nothing(self):
        record = '{"schema":1,"bench":"collective"}\n'
        for rank, more in ((0, []), (1, []), (0, ["--dry-run"]), (1, ["--dry-run"])):
            with tempfile.TemporaryDirectory() as folder, self.subTest(rank=rank, more=more):
                file, link = f"{folder}/x.{rank}.et", f"{folder}/link"
                words = ["--collectives", "all_scan", "--executor", "local", "--ranks", "2", *SMALL, *more, "--export", "chakra",
                         f"{folder}/x"]
                if "knows no format" in run(*words, "--dry-run").stderr:
                    self.skipTest("no libprotobuf here")
                for name in os.listdir(folder):
                    os.remove(f"{folder}/{name}")
                if not more:
                    self.refuse_alone(*words, "-J", file, words="name the same file")
                self.assertEqual(os.listdir(folder), [])
                os.symlink(file, link)
                for flag, text in (("--topology", machine_text()), ("--resume", record), ("-J", record), ("-J", ""),
                                   ("--csv", "a,b\n")):
                    self.kept(file, text, *words, flag, link, told="name the same file")
                self.kept(file, record, *words, told="has records, which would be lost")
                os.remove(file)
                os.mkfifo(file)
                self.refuse_alone(*words, words="it is a pipe or a device")

    def test_no_output_replaces_records(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            one = ["--collectives", "all_scan", "--executor", "local", "--ranks", "2", *SMALL]
            for more in ["--benchmark_out=" + path], ["--trace", path]:
                self.kept(path, '{"schema":1,"bench":"collective"}\n', *one, *more, told="has records, which would be lost")

    def kept(self, path, text, *arguments, told):
        """Refuses, and the file holds what it held."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.refuse_alone(*arguments, words=told)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_calibrations_that_cannot_be(self):
        with tempfile.TemporaryDirectory() as folder:
            four = os.path.join(TOPOLOGIES, "h200-4.json")
            place = ["--calibrate", folder + "/x.json"]
            self.refuse_alone("--calibrate", folder, words="is a directory")
            self.refuse_alone(*place, "--ranks", "1", words="at least two ranks")
            self.refuse_alone(*place, "--executor", "simulator", "--topology", four, words="kernels of layers on --ranks 1")
            self.refuse_alone(*place, "--topology", four, "--ranks", "1", words="kernels of layers on --ranks 1")
            self.refuse_alone(*place, "--ranks-per-gpu", "2", words="ranks of one GPU have no link to --calibrate")
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
        self.refuse("--heads", "0", launcher=mpirun(2), words="--heads")
