# SPDX-License-Identifier: Apache-2.0
"""The project's own source files, for the tests that read them."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCT = ("collectives", "sp_methods", "harness")  # everything in C++ or CUDA that is no test
FOLDERS = (*PRODUCT, "tests", "plots", "results/peers", "cmake", "docs", ".ci")
CPP = (".cpp", ".hpp", ".cu", ".cuh")


def files(*folders):
    """Paths from the root of all files below the folders, without what Python compiles for itself."""
    return [path.relative_to(ROOT).as_posix() for folder in folders for path in sorted((ROOT / folder).rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts]


def cpp(*folders):
    """The texts of the C++ and CUDA sources below the folders, by path."""
    return {path: text_of(path) for path in files(*folders) if path.endswith(CPP)}


def sources():
    """The texts of all that a person wrote for a machine to run, by path."""
    top = [path.name for path in sorted(ROOT.iterdir()) if path.is_file()]
    return {path: text_of(path) for path in [*top, *files(*FOLDERS)]
            if path.endswith((*CPP, ".py", ".cmake", ".sh", "CMakeLists.txt")) or path in ("run", ".ci/run")}


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")
