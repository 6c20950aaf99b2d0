# SPDX-License-Identifier: Apache-2.0
"""The schema of records as the benches print it: what every key is, and what its absence says."""

import json
import pathlib

FIELDS = {field["key"]: field for field in json.loads(pathlib.Path(__file__).with_name("fields.json").read_text(encoding="utf-8"))}


def parts(of):
    """The keys within an object, such as `machine`."""
    return [key.removeprefix(f"{of}.") for key in FIELDS if key.startswith(f"{of}.")]


def add_options(parser, keys):
    """Adds a flag for each of these keys, of a number or of a word."""
    for key in keys:
        parser.add_argument(f"--{key.replace('_', '-')}", type=int if FIELDS[key]["type"] == "whole" else str)


def value(record, key):
    """The value of a key, or what a record without it says by that; None where it says nothing."""
    return record.get(key, FIELDS[key].get("absent"))


def is_said(record, key):
    """True if a record says more at a key than one without the key."""
    return value(record, key) not in ("", None, FIELDS[key].get("absent"))
