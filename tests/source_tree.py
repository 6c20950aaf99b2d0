# SPDX-License-Identifier: Apache-2.0
"""The project's own source files, for the tests that read them."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The folders of docs/design.md: everything in C++ or CUDA that is no test.
FLOORS = ("collectives", "sp_methods", "harness")
PRODUCT = FLOORS
CPP = {".cpp", ".hpp", ".cu", ".cuh"}
CUDA = {".cu", ".cuh"}
SCRIPTS = {".py", ".cmake", ".sh"}
SHELL = ("run", ".ci/run")
FOLDERS = (*PRODUCT, "tests", "plots", "results/peers", "cmake", "docs", ".ci")


def cpp_files(*folders, root=ROOT):
    """Paths of the C++ and CUDA sources below the folders, from the root."""
    return [path for path in files_below(folders, root) if path.suffix in CPP]


def all_sources(root=ROOT):
    """Everything a person wrote for a machine to run, in whatever language."""
    top = [path.relative_to(root) for path in sorted(root.iterdir()) if path.is_file()]
    return [path for path in [*top, *files_below(FOLDERS, root)] if _is_source(path)]


def files_below(folders, root=ROOT):
    """Paths of all files below the folders, from the root, without what Python compiles for itself."""
    return [path.relative_to(root) for folder in folders for path in sorted((root / folder).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts]


def text_of(path, root=ROOT):
    return (root / path).read_text(encoding="utf-8")


def _is_source(path):
    return path.suffix in CPP | SCRIPTS or path.name in ("run", "CMakeLists.txt")
