# SPDX-License-Identifier: Apache-2.0
"""Asks the program library_times what a library's calls take on a topology."""

import csv
import io
import pathlib
import subprocess

from baton.checks import ResultsError

PROGRAM = "library_times"


def is_built(programs):
    return (pathlib.Path(programs) / PROGRAM).exists()


def text_of(programs, topology, natives, gpus, sizes):
    """Returns the program's CSV. Throws ResultsError."""
    program = pathlib.Path(programs) / PROGRAM
    lists = {"--native": natives, "--ranks": gpus, "--bytes": sizes}
    words = [str(program), "--topology", str(topology),
             *(word for flag, values in lists.items() for word in (flag, ",".join(map(str, values))))]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ResultsError(f"cannot run {program}: {error.strerror}; ./run predict builds it") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["library_times failed"])[-1]
        raise ResultsError(last.removeprefix("baton: ").replace("--ranks: ", "--gpus: ", 1))
    return done.stdout


def of_calls(programs, topology, natives, gpus, sizes):
    """Returns {(native, gpus, bytes): (seconds, protocol)}."""
    rows = csv.DictReader(io.StringIO(text_of(programs, topology, natives, gpus, sizes)))
    return {(row["native"], int(row["gpus"]), int(row["total_bytes"])): (float(row["microseconds"]) * 1e-6, row["protocol"])
            for row in rows}
