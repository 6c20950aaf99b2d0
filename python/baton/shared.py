# SPDX-License-Identifier: Apache-2.0
"""The modules that read records for `./run compare` and the pages, which this package shares with them.

A wheel has them in a folder of the package, under the paths that they have in the source tree.
"""

import importlib.util
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent


def _root():
    inside = PACKAGE / "shared_files"
    return inside if inside.is_dir() else PACKAGE.parents[1]


def _load(name, path):
    """Imports a file by a name of this package, so that it takes no name that a user's module may have."""
    spec = importlib.util.spec_from_file_location(f"baton.{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reading = _load("compare_reading", _root() / "compare/reading.py")
results = reading.results
