# SPDX-License-Identifier: Apache-2.0
"""What `./run` refuses, it refuses in one line before it installs or builds anything."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Refusals(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([ROOT / "run", *words], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
        return done.stderr

    def test_words_that_a_command_does_not_know(self):
        self.assertIn("unknown command 'bogus'", self.refused("bogus"))
        self.assertIn("setup takes no arguments", self.refused("setup", "now"))
        self.assertIn("unknown command ''", self.refused(""))
        self.assertIn("no preset '.*'", self.refused("test", "--preset", ".*"))
        for words in (("--all",), ("--tables", "2"), ("--measure", "--tables="), ("",), ("0",), ("", "")):
            self.assertIn("paper takes --local, or --measure with --tables LIST", self.refused("paper", *words))
        for tables in ("7", "2,", "2,x", "2 --local"):
            self.assertIn("--tables takes some of 2,3,4,5,6", self.refused("paper", "--measure", f"--tables={tables}"))
        self.assertIn("CMakePresets.json has no preset 'x'", self.refused("test", "--preset", "x"))
        self.assertIn("unrecognized arguments: --rank; try ./run doctor --help", self.refused("doctor", "--ranks", "2", "--rank"))

    def test_a_terminal_gets_no_character_that_it_obeys(self):
        for words in (("\x1b[31m\n",), ("setup", "\x1b\n"), ("dist", "\x1b\n"), ("wheel", "\x1b\n"), ("doctor", "-\x1b\n"),
                      ("paper", "\x1b\n"), ("test", "--preset", "\x1b\n")):
            self.assertNotIn("\x1b", self.refused(*words))

    def test_by_a_link_and_with_a_path_of_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            link = pathlib.Path(folder, "link")
            link.symlink_to(ROOT / "run")
            done = subprocess.run([link, "help"], capture_output=True, text=True, cwd=folder, env={**os.environ, "CDPATH": folder}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("./run bench", done.stdout)

    def test_from_a_folder_of_any_name(self):
        for name in ("a:b", "a;b", "a\n", "- b", "#"):
            with self.subTest(name), tempfile.TemporaryDirectory(suffix=name) as folder:
                shutil.copy(ROOT / "run", folder)
                for part in ("cmake", "plots"):
                    os.symlink(ROOT / part, f"{folder}/{part}")
                done = subprocess.run([f"{folder}/run", "report", "nothing.jsonl"], capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual((done.returncode, done.stderr), (2, "report: nothing.jsonl: No such file or directory\n"))

    def test_a_folder_in_which_cmake_cannot_build(self):
        for name in ("a;b", "a\n", "a[b", "]", "#", '"', "\\", "${x}", "a:b", "$", "a b", "ä'&|(=%"):
            with self.subTest(name), tempfile.TemporaryDirectory(suffix=name) as folder:
                script = f"source {ROOT}/cmake/say.sh; source {ROOT}/cmake/build.sh; step() {{ exit 7; }}; build cpu usable_cores"
                done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
                refused = not re.fullmatch(r"[\w /:$ä'&|(=%]*", folder)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1) if refused else (7, 0), done)


class Cores(unittest.TestCase):
    """The plan's cores are those that a program of the build counts, whatever variables of OpenMP say."""

    def test_variables_of_openmp_change_nothing(self):
        counting = """
            set -euo pipefail
            source "$1/cmake/build.sh"
            count_gpus() { echo 0; }
            quietly() { mkdir -p build/cpu/bin && echo 'echo 7' >build/cpu/bin/usable_cores && chmod +x build/cpu/bin/usable_cores; }
            choose_preset
            count_cores
            echo "$cores"
        """
        for variables in ({"OMP_NUM_THREADS": "16"}, {"OMP_NUM_THREADS": "1"}, {"OMP_THREAD_LIMIT": "1"}):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(["bash", "-c", counting, "bash", ROOT], cwd=folder, env={**os.environ, **variables}, capture_output=True,
                                      text=True, check=False)
            self.assertEqual((done.stdout, done.stderr), ("7\n", ""), variables)
        for script in (ROOT / "run", *(ROOT / "cmake").glob("*.sh")):
            self.assertNotRegex(script.read_text(encoding="utf-8"), r"\bnproc\b", script)


ATTENDED = """
set -euo pipefail
source cmake/attend.sh
leave_on_signals
work() { echo begun; sleep 300 | cat; }
go_on() { local after_interrupt="go on"; attended work || echo "ended with $?"; }
"$@"
echo after
"""


class Signals(unittest.TestCase):
    def ended_by(self, number, *words):
        """The status and the output of a script that got a signal alone, as `./run` gets it from a terminal or from kill."""
        with subprocess.Popen(["bash", "-c", ATTENDED, "bash", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
                              preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL) for one in (signal.SIGINT, signal.SIGQUIT)]) as script:
            self.assertEqual(script.stdout.readline(), "begun\n")
            script.send_signal(number)
            return script.stdout.read(), script.wait(300)  # the output ends with the last process that has it

    def test_one_ends_what_was_started_and_the_script(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            self.assertEqual(self.ended_by(number, "attended", "work"), ("", 128 + number))

    def test_ctrl_c_of_what_keeps_its_results_lets_the_answer_follow(self):
        self.assertEqual(self.ended_by(signal.SIGINT, "go_on"), ("ended with 130\nafter\n", 0))
        self.assertEqual(self.ended_by(signal.SIGTERM, "go_on"), ("", 128 + signal.SIGTERM))

    def test_without_one_the_status_and_the_input_are_those_of_the_command(self):
        for words, given, expected in ((("cat",), "words", (0, "wordsafter\n", "")), (("sh", "-c", "exit 5"), "", (5, "", ""))):
            done = subprocess.run(["bash", "-c", ATTENDED, "bash", "attended", *words], cwd=ROOT, input=given, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), expected)


if __name__ == "__main__":
    unittest.main()
