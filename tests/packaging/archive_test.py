# SPDX-License-Identifier: Apache-2.0
"""The archive of `./run dist` knows its commit, wherever it is unpacked, and recipes name what it needs."""

import ast
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
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def clone(self):
        """A clone of HEAD: this tree may have changes, and its build folder is not this test's."""
        output_of("git", "clone", "-q", ROOT, "clone", cwd=self.folder)
        return self.folder / "clone"

    def test_its_build_has_the_commit_even_within_another_repository(self):
        clone = self.clone()
        said = output_of("./run", "dist", cwd=clone)
        checksum, name = re.fullmatch(r"([0-9a-f]{64})  (baton_[0-9.]+\.orig\.tar\.gz)", said).groups()
        archive = clone / "build/dist" / name
        self.assertEqual(output_of("sha256sum", archive, cwd=self.folder).split()[0], checksum)
        other = self.folder / "other"
        output_of("git", "init", "-q", other, cwd=self.folder)
        with tarfile.open(archive) as packed:
            packed.extractall(other)
        source = next(other.glob("baton-*"))
        header = self.folder / "build.hpp"
        output_of("cmake", f"-DSOURCE={source}", f"-DTARGET={header}", "-P", source / "cmake/write_build_header.cmake",
                  cwd=source)
        commit = output_of("git", "rev-parse", "--short=12", "HEAD", cwd=clone)
        self.assertIn(f'build_commit = "{commit}"', header.read_text(encoding="utf-8"))

    def test_it_is_the_same_wherever_it_is_made(self):
        clone = self.clone()
        first = output_of("./run", "dist", cwd=clone)
        self.assertEqual(output_of("./run", "dist", cwd=clone), first)

    def test_changes_that_are_left_out_are_named(self):
        clone = self.clone()
        (clone / "README.md").write_text("changed\n", encoding="utf-8")
        self.assertIn("changes that are not committed are left out", output_of("./run", "dist", cwd=clone))


class SpackRecipe(unittest.TestCase):
    RECIPE = (ROOT / "cmake/packaging/spack/package.py").read_text(encoding="utf-8")

    def named(self, directive):
        calls = [node for node in ast.walk(ast.parse(self.RECIPE)) if isinstance(node, ast.Call)]
        return [call.args[0].value for call in calls if getattr(call.func, "id", "") == directive]

    def test_it_has_the_version_of_the_project(self):
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        self.assertEqual(self.named("version"), re.findall(r"^project\(baton VERSION ([0-9.]+)", project, re.M))

    def test_it_needs_the_packages_that_cmake_finds(self):
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        needed = {name.lower().replace("eigen3", "eigen") for name in re.findall(r"find_package\((\w+)", project)} - {"threads"}
        given = {re.split("[@ ]", name)[0].replace("nlohmann-json", "nlohmann_json") for name in self.named("depends_on")}
        self.assertLessEqual(needed, given)


if __name__ == "__main__":
    unittest.main(verbosity=2)
