# SPDX-License-Identifier: Apache-2.0
"""The ranks of a program: their variables, their number, what is told of one that dies, and the code that they end with."""

import json
import os
import signal
import subprocess
import sys
import unittest

from baton.own import ranks
from plots.example import InFolder

PROGRAM = """
import os, sys, time
own = os.environ.get("RANK")
sys.stdout.write(f"{own} of {os.environ.get('WORLD_SIZE')} {os.environ['BATON_WORKER']} {os.environ.get('BATON_LAUNCH')}\\n")
sys.stdout.flush()
if own == "1" and "fail" in sys.argv:
    sys.exit(7)
if own == "1" and "leave" in sys.argv:
    sys.exit(0)
if "child" in sys.argv:
    import subprocess
    subprocess.Popen(["sleep", "600"])
    sys.exit(0)
if own == "1" and "die" in sys.argv:
    os.abort()
if {"fail", "die", "leave", "wait"} & set(sys.argv):
    time.sleep(600)
"""


class Ranks(InFolder):
    def start(self, size, *words):
        """Starts so many ranks of the program, which end two seconds after one has failed."""
        free = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "BATON_LAUNCH")}
        launcher = f"import sys; sys.path.insert(0, {os.path.dirname(ranks.__file__)!r}); import ranks; ranks.GRACE_SECONDS = 2; ranks.PATIENCE_SECONDS = 3; " \
                   "sys.exit(ranks.main(sys.argv[1:]))"
        program = [sys.executable, "-c", PROGRAM, *words]
        command = [sys.executable, "-c", launcher, str(len(program)), *program, str(size), "--ranks", "8", "--worker", self.folder]
        return subprocess.Popen(command, env=free, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_ranks(self, size, *words):
        """(lines on the standard error in order, exit code); nothing may be on the standard output."""
        process = self.start(size, *words)
        out, told = process.communicate(timeout=60)
        self.assertEqual(out, "")
        return sorted(told.splitlines()), process.returncode

    def reports(self):
        path = self.folder / "messages"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    def test_each_has_its_number_and_the_folder_of_the_bench(self):
        told, code = self.run_ranks(3)
        self.assertEqual((told, code), ([f"{rank} of 3 {self.folder} tcp" for rank in range(3)], 0))
        self.assertEqual(self.reports(), [])

    def test_a_program_without_ranks_runs_alone(self):
        self.assertEqual(self.run_ranks(0), ([f"None of None {self.folder} None"], 0))

    def test_one_that_fails_ends_the_others_and_its_code_is_reported(self):
        told, code = self.run_ranks(2, "fail")
        self.assertEqual((len(told), code, self.reports()), (2, 7, []))

    def test_the_signal_that_ends_one_is_told(self):
        _, code = self.run_ranks(2, "die")
        self.assertEqual(code, 128 + signal.SIGABRT)
        self.assertEqual(self.reports(), [{"what": "", "rank": 1, "text": "died of SIGABRT"}])

    def test_one_that_ends_well_long_before_the_others_is_told(self):
        _, code = self.run_ranks(2, "leave")
        self.assertEqual(code, 1)
        self.assertEqual(self.reports(), [{"what": "", "rank": 1, "text": "ended before the others"}])

    def test_what_ranks_have_started_ends_with_them(self):
        told, code = self.run_ranks(2, "child")  # whose standard error would stay open
        self.assertEqual((len(told), code), (2, 0))

    def test_none_is_left_when_the_launcher_is_ended(self):
        process = self.start(2, "wait")
        lines = [process.stderr.readline() for _ in range(2)]
        self.assertEqual(len(lines), 2)
        process.terminate()
        process.stderr.read()  # until no rank holds it open
        self.assertEqual(process.wait(), 128 + signal.SIGTERM)
        process.stdout.close()
        process.stderr.close()

    def test_the_words_that_start_them_have_the_program_as_the_user_started_it(self):
        words = ranks.launcher()
        self.assertEqual(words[3:], [sys.executable, *sys.orig_argv[1:]])
        self.assertEqual(int(words[2]), len(words[3:]))


if __name__ == "__main__":
    unittest.main()
