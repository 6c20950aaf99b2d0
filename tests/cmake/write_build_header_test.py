# SPDX-License-Identifier: Apache-2.0
"""The commit that a build has in its records: of a changed tree its own, and unknown only with the reason."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

CMAKE = pathlib.Path(__file__).resolve().parents[2] / "cmake"
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


class Commit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        for name in ("cmake", "harness", "docs"):
            (self.root / name).mkdir(parents=True)
        for name in ("write_build_header.cmake", "baton_build.hpp.in", "archived_commit"):
            shutil.copy(CMAKE / name, self.root / "cmake")
        self.source = self.root / "harness" / "a source;1.cpp"
        self.source.write_text("1\n", encoding="utf-8")

    def committed(self):
        for words in (("init", "-q"), ("add", "-A"), (*IDENTITY, "commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=self.root, check=True)
        return self

    def header(self, **variables):
        """The commit in the header, and why it is unknown."""
        target = self.root.parent / "baton_build.hpp"
        environment = {key: value for key, value in os.environ.items() if key != "BATON_COMMIT"}
        subprocess.run(["cmake", f"-DSOURCE={self.root}", f"-DTARGET={target}", "-P", self.root / "cmake/write_build_header.cmake"],
                       check=True, env={**environment, "GIT_CEILING_DIRECTORIES": str(self.root.parent), **variables})
        return re.search(r'build_commit = "(.*)";(?:.*\n)*.*build_commit_lacks = "(.*)";', target.read_text(encoding="utf-8")).groups()

    def test_a_tree_without_changes_has_its_commit(self):
        commit, lacks = self.committed().header()
        self.assertRegex(commit, "^[0-9a-f]{12}$")
        self.assertEqual(lacks, "")
        (self.root / "docs" / "note").write_text("of no build", encoding="utf-8")
        self.assertEqual(self.header(), (commit, ""))

    def test_each_change_has_a_name_of_its_own_and_keeps_it(self):
        clean, _ = self.committed().header()
        new = self.root / "harness" / "new\u00e4 \"file\".cpp"
        found = []
        for path, text in ((self.source, "2\n"), (self.source, "3\n"), (new, "1\n"), (new, "2\n")):
            path.write_text(text, encoding="utf-8")
            found.append(self.header()[0])
            self.assertEqual(self.header()[0], found[-1])
            self.assertRegex(found[-1], f"^{clean}-dirty-[0-9a-f]{{8}}$")
        self.assertEqual(len(set(found)), 4)
        new.write_text("1\n", encoding="utf-8")
        self.assertEqual(self.header()[0], found[2])
        new.rename(new.with_name("another.cpp"))
        self.assertNotIn(self.header()[0], found)
        new.with_name("another.cpp").unlink()
        self.source.write_text("1\n", encoding="utf-8")
        self.assertEqual(self.header()[0], clean)

    def test_what_is_staged_and_what_has_another_mode_is_changed(self):
        clean, _ = self.committed().header()
        self.source.chmod(0o755)
        executable, _ = self.header()
        self.source.chmod(0o644)
        self.source.write_text("2\n", encoding="utf-8")
        changed, _ = self.header()
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        self.assertEqual(self.header()[0], changed)
        self.assertEqual(len({clean, executable, changed}), 3)

    def test_an_unknown_commit_has_the_words_of_git(self):
        self.assertEqual(self.header()[0], "unknown")
        self.assertIn("git says: fatal: not a git repository", self.header()[1])
        commit, lacks = self.committed().header(GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
        self.assertEqual(commit, "unknown")
        self.assertIn("git says: fatal: detected dubious ownership", lacks)

    def test_who_says_the_commit_is_believed(self):
        self.assertEqual(self.header(BATON_COMMIT="1234"), ("1234", ""))
        (self.root / "cmake/archived_commit").write_text("0123456789abcdef0123\n", encoding="utf-8")
        self.assertEqual(self.header(), ("0123456789ab", ""))


if __name__ == "__main__":
    unittest.main()
