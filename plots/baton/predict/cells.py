# SPDX-License-Identifier: Apache-2.0
"""Published times of a library's calls: one cell for each call, number of GPUs and size."""

import collections
import csv
import math

from baton import checks, files
from baton.checks import ResultsError

# `bytes` are those of the largest operand of a GPU, as nccl-tests prints them.
Cell = collections.namedtuple("Cell", "system library call gpus bytes seconds")

# The natives of the simulator, by the names that cells and people give the calls.
NATIVES = {"all_gather": "nccl_all_gather", "reduce_scatter": "nccl_reduce_scatter", "all_to_all": "nccl_all_to_all",
           "alltoall": "nccl_all_to_all"}
MOST_GPUS, MOST_BYTES, MOST_MICROSECONDS = 2**20, 2**50, 1e12
COLUMNS = ("system", "nccl", "collective", "gpus", "total_bytes", "microseconds")


def read(path):
    """Returns the cells of a CSV whose lines with # are remarks. Calls without a native are left out."""
    lines = [(index, line) for index, line in enumerate(files.text_of(path).splitlines(), start=1)
             if line.strip() and not line.startswith("#")]
    rows = [(row, f"{path}:{index}") for (index, _), row in zip(lines[1:], csv.DictReader(line for _, line in lines))]
    missing = [name for name in COLUMNS if not rows or rows[0][0].get(name) is None]
    if missing:
        raise ResultsError(f"{path}: no cells with the column {missing[0]}; needed: {', '.join(COLUMNS)}")
    return [Cell(row["system"], f"NCCL {row['nccl']}", NATIVES[row["collective"]], number(row, "gpus", MOST_GPUS, where),
                 number(row, "total_bytes", MOST_BYTES, where), number(row, "microseconds", MOST_MICROSECONDS, where, float) * 1e-6)
            for row, where in rows if row["collective"] in NATIVES]


def number(row, column, most, where, kind=int):
    """Returns a number above 0 and up to `most` of a cell. Throws ResultsError that names line and column."""
    try:
        value = kind(row[column])
    except (ValueError, TypeError):
        value = math.nan
    if not 0 < value <= most:  # nan is neither
        raise ResultsError(f"{where}: {column}: expected {'a whole number' if kind is int else 'a number'} above 0, at most "
                           f"{most:.2g}, found {checks.shown(row[column])}")
    return value


def of_system(cells, system, gpus):
    """Returns the cells of a system with so many GPUs. Throws ResultsError if two counts are not there."""
    found = [cell for cell in cells if cell.system == system]
    if not found:
        known = ", ".join(sorted({cell.system for cell in cells}))
        raise ResultsError(f"--system: no cells of '{system}'; there are {known}" if known else
                           f"--fit: no cells of a call that is known: {', '.join(NATIVES)}")
    here = sorted({cell.gpus for cell in found})
    if len(set(gpus)) < 2 or not set(gpus) <= set(here):
        raise ResultsError(f"--fit-gpus: two or more of the counts that {system} has, {', '.join(map(str, here))}")
    return [cell for cell in found if cell.gpus in gpus]
