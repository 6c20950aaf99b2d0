# SPDX-License-Identifier: Apache-2.0
"""Cells that were published, as results/paper/ has them: one CSV a table."""

import csv
import pathlib

from baton import checks, files
from baton.checks import ResultsError

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "results" / "paper"


def load_cells(path, texts=(), numbers=()):
    """Returns the rows of a CSV. Throws ResultsError if one lacks a column, or has no whole number where it must."""
    try:
        with open(files.reading(path), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise ResultsError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    missing = [name for name in (*texts, *numbers) if name not in (reader.fieldnames or ())]
    if missing:
        raise ResultsError(f"{path}:1: the table lacks the columns {', '.join(missing)}")
    for number, row in enumerate(rows, start=2):
        for name in (reader.fieldnames or ()):
            if not checks.is_text(row[name]) or (name in numbers and not row[name].isdecimal()):
                raise ResultsError(f"{path}:{number}: {name}: expected {'a whole number' if name in numbers else 'text'}, "
                                   f"found {checks.shown(row[name])}")
    return rows
