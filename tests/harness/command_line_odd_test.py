# SPDX-License-Identifier: Apache-2.0
"""500 odd inputs, generated: python3 command_line_odd_test.py COLLECTIVE_BENCH OPERATOR_BENCH

BATON_SEED chooses others. Whatever the input is, nothing crashes or hangs, an error is one clear line that names the flag or
the file, its exit code is that of docs/runs.md, no row is without a time or a reason, and no output is lost.
"""

import json
import os
import resource
import socket
import subprocess
import unittest

from benches import BENCH, OPERATOR_BENCH, TOPOLOGIES, machine_text
from odd_files import SECONDS, SEED, Generated, Machines, Records, bench, words_of
from odd_words import SMALL, OddWords

__all__ = ["Machines", "Records"]  # unittest runs them too

FLAGS, UNKNOWN, PLACES = 200, 40, 70


class Flags(Generated):
    def test_words_of_flags(self):
        odd = OddWords(self.random)
        cases = []
        for flag, word, verdict in (odd.flag() for _ in range(FLAGS)):
            others = {name: value for name, value in SMALL.items() if name != flag}
            if flag == "--min-bytes":
                del others["--heads"]
            cases.append(([*words_of(others), "--dry-run", flag, word], flag, verdict))
        self.all(cases, self.check_words)

    def check_words(self, case, ended):
        _, flag, is_right = case
        if not is_right:
            return self.assert_one_line(ended, [flag])
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        return self.assertIn(b"busiest sends", ended.stdout)

    def test_arguments_that_no_bench_takes(self):
        odd = OddWords(self.random)
        self.all([odd.unknown() for _ in range(UNKNOWN)], lambda case, ended: self.assert_one_line(ended, case[1]))


class Outputs(Generated):
    FLAGS = ("--json", "--trace", "--calibrate", "--benchmark_out")

    def test_places_of_outputs(self):
        cases = [self.place(number) for number in range(PLACES)]
        self.all(cases, self.check_place)

    def place(self, number):
        """Returns the arguments, the flag, the file, and what stood in it."""
        folder = self.folder / str(number)
        folder.mkdir()
        flag, kind = self.random.choice(self.FLAGS), self.random.choice(
            ("folder", "missing", "pipe", "socket", "full", "stdout", "loop", "long", "twice", "hard", "soft", "machine"))
        file = folder / "file"
        made = {"folder": folder, "missing": folder / "none" / "x", "full": "/dev/full", "stdout": "/dev/stdout",
                "long": "n" * 300}.get(kind, file)
        more = []
        if kind == "pipe":
            os.mkfifo(file)
        if kind == "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(file))
        if kind == "loop":
            file.symlink_to(file)
        if kind in ("twice", "hard", "soft", "machine"):
            file.write_text(machine_text(), encoding="utf-8")
            other = folder / "other"
            if kind == "soft":
                other.symlink_to("file")
            if kind in ("hard", "machine"):
                os.link(file, other)
            another = next(name for name in self.FLAGS if name != flag)
            more = [f"--topology={other}"] if kind == "machine" else [
                f"{another}={other if kind != 'twice' else folder / '.' / 'file'}"]
            if kind == "machine" and flag == "--calibrate":
                flag = "--json"
        return [*words_of(SMALL), f"{flag}={made}", *more], flag, file, file.read_bytes() if more else None

    def check_place(self, case, ended):
        arguments, flag, file, text = case
        self.assert_one_line(ended, [flag])
        if text is not None:
            self.assertEqual(file.read_bytes(), text)
        self.assertFalse([name for name in os.listdir(file.parent) if name not in ("file", "other")], arguments)

    def test_a_disk_that_is_full_keeps_whole_records(self):
        old = b'{"old": 1}\n' * 6000 + b'{"torn": 1'
        for left in (0, 1000, 4000, 9000):
            most = len(old) + left
            path = self.folder / "records"
            path.write_bytes(old)
            ended = bench(*words_of(SMALL), "--blocks", "1,2,3,4,5,6,7,8", "-J", path, preexec_fn=lambda most=most:
                          resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
            error = ended.stderr.decode()
            self.assertEqual((ended.returncode, error.count("\n")), (1, 1), error)
            self.assertIn("cannot append a record", error)
            self.assertEqual(path.read_bytes()[:len(old)], old)
            for line in filter(None, path.read_bytes()[len(old):].split(b"\n")):
                json.loads(line)

    def test_a_trace_or_an_export_that_cannot_be_written_is_reported(self):
        # A name may have 255 bytes: that of the file has, and the one that it is written under has more.
        export = ["--export", "chakra", self.folder / ("x" * 250)]
        knows_export = bench(*words_of(SMALL), "--dry-run", *export[:2], self.folder / "dry").returncode == 0
        most = 20000  # bytes of a file, which stand for a full disk; Open MPI needs more
        for executor, launches, *wanted in (("local", 1, "--trace", self.folder / "t"), ("local", 2, "--trace", self.folder / "t"),
                                            *([("local", 1, *export), ("mpi", 1, *export)] if knows_export else [])):
            path = self.folder / f"{executor}{launches}{wanted[0]}"
            ended = bench(*words_of({**SMALL, "--executor": executor, "--blocks": "64", "--heads": "16"}), "-J", path, *wanted,
                          "--launches", str(launches), preexec_fn=lambda local=executor == "local": local and
                          resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
            error = ended.stderr.decode()
            self.assertEqual((ended.returncode, error.count("\n")), (1, 1), error)
            self.assertIn(f"cannot write '{wanted[-1]}", error)
            self.assertIn(b"\nall_scan ", ended.stdout)
            self.assert_whole(path, launches)
            self.assertFalse(list(self.folder.glob("*.part")))

    def test_a_reader_that_leaves_is_no_failure(self):
        for arguments in (["--list"], ["--help"], [*words_of(SMALL), "--cycles", "50"], ["--dry-run", "--cycles", "50"]):
            process = subprocess.Popen([BENCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.readline()
            process.stdout.close()
            with process.stderr:
                self.assertEqual(process.stderr.read(), b"", arguments)
            self.assertIn(process.wait(SECONDS), (0, 141), arguments)

    def test_streams_that_cannot_be_written(self):
        for arguments in (["--list"], ["--help"], words_of(SMALL), [*words_of(SMALL), "--dry-run"]):
            with open("/dev/full", "wb") as full:
                ended = subprocess.run([BENCH, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            self.assertEqual((ended.returncode, ended.stderr.count(b"\n")), (1, 1), ended.stderr)
            closed = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BENCH, *arguments], timeout=SECONDS,
                                    check=False)
            self.assertEqual(closed.returncode, 1, arguments)

    def test_the_environment_does_no_harm(self):
        path = self.folder / "records"
        odd = {b"OMP_X": b"\xff\xc3", b"NCCL_Y": b"a\nb", b"BENCHMARK_OUT_FORMAT": b"xyz", b"BENCHMARK_FILTER": b"nothing",
               b"BENCHMARK_REPETITIONS": b"7", b"BENCHMARK_LIST_TESTS": b"true", b"BENCHMARK_OUT": b"/none/x"}
        ended = bench(*words_of(SMALL), "-J", path, env={**os.environb, **odd})
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        self.assertEqual(self.assert_whole(path)[0]["machine"]["environment"]["NCCL_Y"], "a\\nb")


    def test_what_a_file_sets_of_mpi_is_in_the_record(self):
        path, settings = self.folder / "records", self.folder / ".openmpi" / "mca-params.conf"
        settings.parent.mkdir()
        settings.write_text("# of this user\nmpi_yield_when_idle = 1\ncoll_tuned_use_dynamic_rules=1\n", encoding="utf-8")
        ended = bench("--collectives", "all_scan", "--ranks", "2", "--heads", "1", "--tokens", "4", "-n", "3", "-J", path,
                      env={**os.environb, b"HOME": os.fsencode(self.folder)})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        machine = self.assert_whole(path)[0]["machine"]
        if not machine["mpi"].startswith("Open MPI v4"):
            self.skipTest("another MPI")
        self.assertEqual((machine["settings"]["mpi_yield_when_idle"], machine["settings"]["coll_tuned_use_dynamic_rules"]),
                         ("true", "true"))


class Sizes(Generated):
    def test_what_is_too_much_says_how_much(self):
        many = os.path.join(TOPOLOGIES, "dgx-h100-2048x8.json")
        small = ["--heads", "1", "--d-k", "2", "--d-v", "2"]
        for arguments, said in (
                (["--dry-run", "--collectives", "direct_all_gather", "--ranks", "16384"], "GiB of memory"),
                (["--executor", "local", "--collectives", "all_scan", "--ranks", "4096", "--blocks", "1024", "--d-k", "16384"],
                 "GiB of memory"),
                ([*small, "--executor", "simulator", "--topology", many, "--collectives", "all_scan", "--blocks", "2",
                  "--ranks", "16384", "--trace", self.folder / "trace", "--rounds", "1"], ""),
                ([*small, "--executor", "simulator", "--topology", many, "--collectives", "direct_all_gather", "--ranks", "768",
                  "--trace", self.folder / "trace"], "steps would need")):
            ended = bench(*arguments)
            # A long case says every ten seconds how far it is.
            errors = [line for line in ended.stderr.splitlines() if not line.startswith(b"case 1 of 1 ")]
            is_skipped = "local" in arguments
            self.assertEqual((ended.returncode, len(errors)), (6, 1) if is_skipped else (0, 0))
            self.assertIn(said, ended.stdout.decode())

    def test_what_is_far_too_much_is_refused(self):
        counts = ",".join(map(str, range(1, 2001)))
        for arguments, name in (
                (["--dry-run", "--collectives", "direct_all_gather", "--ranks", counts], "--dry-run"),
                (["--ranks", "16384"], "--ranks"), (["--ranks", ",".join(map(str, range(1, 5000)))], "--ranks"),
                (["--cycles", "1000", "--blocks", ",".join(map(str, range(1, 400)))], "--cycles"),
                (["--collectives", "ring_exchange", "-b", "8T", "--tokens", "16777216"], "--tokens"),
                (["--heads", "16777216", "--d-k", "16777216"], "--heads")):
            self.assert_one_line(bench(*arguments), [name])
        self.assert_one_line(bench("--heads", "16777216", "--d-k", "512", "--d-v", "512", program=OPERATOR_BENCH),
                             ["--tokens"])


if __name__ == "__main__":
    print(f"seed {SEED} (BATON_SEED chooses another)", flush=True)
    unittest.main()
