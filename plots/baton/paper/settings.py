# SPDX-License-Identifier: Apache-2.0
"""The settings of the papers' tables, one file a table with a source for each value, as the benches' --like reads them."""

import json

from baton import files
from baton.paper.published import FOLDER

SETTINGS = FOLDER / "settings"


def table(number):
    """The name of a table of ZeCO's paper."""
    return f"zeco-table{number}"


def path(name):
    return SETTINGS / f"{name}.json"


def load(name):
    """Returns the file of a table or suite: its title, bench, flags and their sources."""
    return json.loads(files.reading(path(name)).read_text(encoding="utf-8"))


def flags(name):
    """Returns {flag without its dashes: value}."""
    return load(name)["flags"]
