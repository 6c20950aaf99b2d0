# SPDX-License-Identifier: Apache-2.0
"""What `./run` refuses, it refuses in one line before it installs or builds anything."""

import pathlib
import re
import subprocess
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
        self.assertIn("paper takes no argument but --local", self.refused("paper", "--all"))
        self.assertIn("CMakePresets.json has no preset 'x'", self.refused("test", "--preset", "x"))
        self.assertIn("doctor has no '--rank'; it takes --ranks N", self.refused("doctor", "--ranks", "2", "--rank"))

    def test_the_doctor_takes_every_flag_of_its_own(self):
        """`run` knows them without a build, so it has them a second time."""
        source = (ROOT / "harness/doctor/main.cpp").read_text(encoding="utf-8")
        flags = {flag for names in re.findall(r'add\(\s*"(--[\w,-]+)"', source) for flag in names.split(",")} - {"--answer"}  # hidden
        self.assertLessEqual({"--ranks", "--executors", "--json"}, flags)
        body = re.search(r"^doctor\(\) \{.*?\n\}", (ROOT / "run").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
        for flag in flags:
            script = f"die() {{ exit 2; }}; steps() {{ exit 7; }}\n{body}\ndoctor {flag}"
            self.assertEqual(subprocess.run(["bash", "-c", script], check=False).returncode, 7, flag)


if __name__ == "__main__":
    unittest.main()
