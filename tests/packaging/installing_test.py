# SPDX-License-Identifier: Apache-2.0
"""What `./run` installs: the packages that are missing, by name. The line that installs the wheel reaches pip as one word, both
that of the document and that of `./run wheel`."""

import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME, = re.findall(r'^name = "(.*?)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
WHEEL = NAME.replace("-", "_")  # as files of wheels have names


class Installing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build/wheel").mkdir(parents=True)

    def bash(self, script):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def functions_of_run(self):
        """The script without its last line, which starts it, beside the folder that it reads."""
        (self.folder / "cmake").symlink_to(ROOT / "cmake")
        return re.sub(r'^main "\$@"$', "", (ROOT / "run").read_text(encoding="utf-8"), flags=re.MULTILINE)

    def test_packages_that_are_missing_are_installed_by_name(self):
        stubs = "step() { :; }; not_installed() { printf '%s\\n' \"$@\"; }; install_packages() { echo \"install $*\"; }\n" \
                "dpkg-query() { :; }; optional_packages() { :; }; command() { [[ $2 == dpkg-query ]]; }\n"
        (self.folder / "run").write_text(self.functions_of_run() + stubs + "packages\n", encoding="utf-8")
        words = self.bash("source ./run 2>&1").split()
        self.assertEqual(words[0], "install")
        lines = (ROOT / "cmake/packages.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(words[1:], [line.split()[0] for line in lines if line and not line.startswith("#")])

    def words_of_pip(self, line):
        """What pip is given by a line as a user types it."""
        return self.bash(f"pip() {{ printf '%s\\n' \"$@\"; }}\n{line}").splitlines()

    def test_no_other_project_has_the_name(self):
        self.assertNotEqual(NAME, "baton")  # of Python's index: `pip install -U` would replace ours by it
        self.assertEqual(NAME, NAME.lower())

    def wheel(self, name):
        (self.folder / "build/wheel" / name).write_text("", encoding="utf-8")
        return f"build/wheel/{name}"

    def test_of_the_document(self):
        wheel = self.wheel(f"{WHEEL}-1-py3.whl")
        line, = re.findall(r"^    (pip install .*)$", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(self.words_of_pip(line), ["install", f"{wheel}[frames,natives]"])

    def test_of_the_readme(self):
        wheel = self.wheel(f"{WHEEL}-1-py3.whl")
        line, = re.findall(r"^    \./run wheel && (pip install .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(self.words_of_pip(line), ["install", wheel])

    def test_of_the_command_with_the_newest_wheel(self):
        functions = self.functions_of_run()
        stubs = "packages() { :; }; step() { :; }; steps() { :; }\n" \
                f"quietly() {{ if [[ $1 == wheel ]]; then touch build/wheel/{WHEEL}-3-py3.whl; fi; }}\n"
        (self.folder / "run").write_text(functions + stubs + "wheel\n", encoding="utf-8")
        for old in (f"{WHEEL}-1-py3.whl", f"{WHEEL}-4-py3.whl"):
            path = self.folder / self.wheel(old)
            subprocess.run(["touch", "-d", "2020-01-01", path], check=True)
        said = self.bash("source ./run").splitlines()[-1]
        line = re.fullmatch(r"To install it in a virtual environment: (pip install .*)", said)[1]
        self.assertEqual(self.words_of_pip(line), ["install", f"build/wheel/{WHEEL}-3-py3.whl[frames,natives]"])


if __name__ == "__main__":
    unittest.main()
