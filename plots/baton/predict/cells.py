# SPDX-License-Identifier: Apache-2.0
"""Published times of a library's calls: one cell for each call, number of GPUs and size."""

import collections
import csv

from baton import files
from baton.checks import ResultsError

# `bytes` are those of the largest operand of a GPU, as nccl-tests prints them.
Cell = collections.namedtuple("Cell", "system library call gpus bytes seconds")

# The natives of the simulator, by the names that cells and people give the calls.
NATIVES = {"all_gather": "nccl_all_gather", "reduce_scatter": "nccl_reduce_scatter", "all_to_all": "nccl_all_to_all",
           "alltoall": "nccl_all_to_all"}
COLUMNS = ("system", "nccl", "collective", "gpus", "total_bytes", "microseconds")


def native_of(name):
    """Returns the native that `name` means. Throws ResultsError."""
    if name in NATIVES.values():
        return name
    if name not in NATIVES:
        raise ResultsError(f"no native '{name}'; known: {', '.join(NATIVES)}")
    return NATIVES[name]


def read(path):
    """Returns the cells of a CSV whose lines with # are remarks. Calls without a native are left out."""
    rows = list(csv.DictReader(line for line in files.text_of(path).splitlines() if not line.startswith("#")))
    missing = [name for name in COLUMNS if not rows or rows[0].get(name) is None]
    if missing:
        raise ResultsError(f"{path}: no cells with the column {missing[0]}; needed: {', '.join(COLUMNS)}")
    try:
        return [Cell(row["system"], f"NCCL {row['nccl']}", NATIVES[row["collective"]], int(row["gpus"]),
                     int(row["total_bytes"]), float(row["microseconds"]) * 1e-6)
                for row in rows if row["collective"] in NATIVES]
    except (ValueError, TypeError) as error:
        raise ResultsError(f"{path}: {error}") from error


def of_system(cells, system, gpus):
    """Returns the cells of a system with so many GPUs. Throws ResultsError if two counts are not there."""
    found = [cell for cell in cells if cell.system == system]
    if not found:
        raise ResultsError(f"--system: no cells of '{system}'; there are {', '.join(sorted({cell.system for cell in cells}))}")
    here = sorted({cell.gpus for cell in found})
    if len(set(gpus)) < 2 or not set(gpus) <= set(here):
        raise ResultsError(f"--fit-gpus: two or more of the counts that {system} has, {', '.join(map(str, here))}")
    return [cell for cell in found if cell.gpus in gpus]
