# SPDX-License-Identifier: Apache-2.0
"""The archive of `./run dist` knows its commit, wherever it is unpacked."""

import os
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "BATON_COMMIT"}


def output_of(*words, cwd):
    return subprocess.run(words, cwd=cwd, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout.strip()


def is_repository():
    return subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(is_repository(), "an archive is made of a repository, and this is none")
class Archive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Clones HEAD: this tree may have changes, and its build folder is not this test's."""
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.clone = cls.folder / "clone"
        output_of("git", "clone", "-q", "--depth", "1", f"file://{ROOT}", cls.clone, cwd=cls.folder)

    def test_its_build_has_the_commit_even_within_another_repository(self):
        said = output_of("./run", "dist", cwd=self.clone)
        checksum, name = re.fullmatch(r"([0-9a-f]{64})  (baton_[0-9.]+\.orig\.tar\.gz)", said).groups()
        archive = self.clone / "build/dist" / name
        self.assertEqual(output_of("sha256sum", archive, cwd=self.folder).split()[0], checksum)
        other = self.folder / "other"
        output_of("git", "init", "-q", other, cwd=self.folder)
        with tarfile.open(archive) as packed:
            packed.extractall(other)
        source = next(other.glob("baton-*"))
        header = self.folder / "build.hpp"
        output_of("cmake", f"-DSOURCE={source}", f"-DTARGET={header}", "-P", source / "cmake/write_build_header.cmake",
                  cwd=source)
        commit = output_of("git", "rev-parse", "--short=12", "HEAD", cwd=self.clone)
        self.assertIn(f'build_commit = "{commit}"', header.read_text(encoding="utf-8"))

    def test_it_is_the_same_wherever_it_is_made(self):
        first = output_of("./run", "dist", cwd=self.clone)
        self.assertEqual(output_of("./run", "dist", cwd=self.clone), first)

    def test_changes_that_are_left_out_are_named(self):
        (self.clone / "README.md").write_text("changed\n", encoding="utf-8")
        self.addCleanup(output_of, "git", "checkout", "-q", "README.md", cwd=self.clone)
        self.assertIn("changes that are not committed are left out", output_of("./run", "dist", cwd=self.clone))


if __name__ == "__main__":
    unittest.main(verbosity=2)
