# SPDX-License-Identifier: Apache-2.0
"""The project's own source files, for the tests that read them."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The three floors of docs/design.md.
FLOORS = ("collectives", "sp_methods", "harness")
CPP = {".cpp", ".hpp", ".cu", ".cuh"}
SCRIPTS = {".py", ".cmake", ".sh"}


def cpp_files(*folders):
    """Paths of the C++ and CUDA sources below the folders, from the root."""
    return [path for path in _files(folders) if path.suffix in CPP]


def all_sources():
    """Everything a person wrote for a machine to run, in whatever language."""
    below = _files((*FLOORS, "tests", "plots", "cmake", "docs", ".ci"))
    top = [path.relative_to(ROOT) for path in sorted(ROOT.iterdir()) if path.is_file()]
    return [path for path in [*top, *below] if _is_source(path)]


def _files(folders):
    return [path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file()]


def _is_source(path):
    return path.suffix in CPP | SCRIPTS or path.name in ("run", "CMakeLists.txt")
