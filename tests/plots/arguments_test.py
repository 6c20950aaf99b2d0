# SPDX-License-Identifier: Apache-2.0
"""What a bench would refuse is said without it, and nothing that it takes is refused."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from baton.arguments import command as arguments
from docs import commands  # pylint: disable=no-name-in-module

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHES = json.loads(arguments.FLAGS.read_text(encoding="utf-8"))


def refusal(words, bench="collective_bench"):
    return arguments.refusal(BENCHES[bench]["flags"], shlex.split(words))


class Refusals(unittest.TestCase):
    def test_words_that_no_bench_takes(self):
        for words, wanted in (("--frobnicate", "unknown flag '--frobnicate'"), ("--rank 2", "did you mean '--ranks'?"),
                            ("all_scan", "'all_scan' belongs to no flag"), ("--ranks", "--ranks needs a value"),
                            ("--ranks two", "--ranks: 'two' is not a number that it takes"), ("-b 64Q", "-b: '64Q' is not"),
                            ("--wide=3", "--wide takes no value"), ("--direction sideways", "is not one of forward, reverse, both"),
                            ("--collectives allscan", "unknown collective 'allscan', did you mean 'all_scan'?"),
                            ("--collectives all_scan,", "unknown collective ''"), ("--ranks --json", "needs a value, found '--json'"),
                            ("--export chakra", "--export needs a value"), ("-x", "unknown flag '-x'")):
            self.assertIn(wanted, refusal(words) or "nothing", words)
        self.assertIn("unknown method 'allscan'", refusal("--methods allscan", "operator_bench"))
        self.assertIn("unknown scan 'lasp9'", refusal("--scan all_scan,lasp9", "operator_bench"))

    def test_nothing_that_a_bench_takes(self):
        for words in ("", "--ranks 2,4 -b 64K -e 4MiB -f 4", "-b64K", "-b=64K", "--min-bytes=64K --collectives all", "--export chakra x.et",
                      "--benchmark_filter=x --wide", "--session -7", "--collectives all_scan_fused_16,auto_scan,mpi_exscan",
                      "--stop-at 2.5 --seed 18446744073709551615"):
            self.assertIsNone(refusal(words), words)

    def test_no_command_of_the_documents(self):
        seen = 0
        for page in commands.pages():
            if page.name.startswith("adding_"):  # with a name that the reader is to add
                continue
            for one in commands.commands_of(page):
                found = re.search(r"(?:^\./run bench(?: (operator|model))?|bin/(collective|operator|model)_bench)(.*)", one.text)
                if not found or "[" in one.text or "|" in one.text or "..." in one.text:
                    continue
                seen += 1
                bench = f"{found[1] or found[2] or 'collective'}_bench"
                self.assertIsNone(arguments.refusal(BENCHES[bench]["flags"], shlex.split(found[3], comments=True)), one.text)
        self.assertGreater(seen, 20)


class Command(unittest.TestCase):
    def ended(self, *words):
        return subprocess.run([sys.executable, "-m", "baton", "arguments", *words], capture_output=True, text=True, check=False,
                              env={"PYTHONPATH": str(ROOT / "plots")})

    def test_a_refusal_is_one_line_and_ends_with_2(self):
        done = self.ended("collective_bench", "--frobnicate")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done)
        self.assertEqual(self.ended("collective_bench", "--ranks", "2").returncode, 0)

    def test_help_is_that_of_the_bench(self):
        self.assertIn("--min-bytes", self.ended("--help", "collective_bench").stdout)

    def test_run_refuses_and_helps_without_a_build(self):
        """In a copy that has nothing to build with."""
        with tempfile.TemporaryDirectory() as place:
            for name in ("cmake", "plots", "collectives", "sp_methods"):
                (pathlib.Path(place) / name).symlink_to(ROOT / name)
            copy = shutil.copy(ROOT / "run", place)
            for words, status, wanted in ((("--frobnicate",), 2, ""), (("operator", "--methods", "allscan"), 2, ""),
                                        (("--help",), 0, "--min-bytes"), (("model", "-h"), 0, "--optimizer")):
                done = subprocess.run(["bash", copy, "bench", *words], capture_output=True, text=True, timeout=60, check=False,
                                      env={"PATH": os.environ["PATH"]})
                self.assertEqual(done.returncode, status, done)
                self.assertIn(wanted, done.stdout)
                self.assertNotIn("[1/", done.stdout)
                self.assertFalse(pathlib.Path(place, "build").exists())


if __name__ == "__main__":
    unittest.main()
