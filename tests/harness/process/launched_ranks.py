# SPDX-License-Identifier: Apache-2.0
"""The processes of a bench that launched its ranks itself."""

import os


def processes_of(parent):
    """The process ids of the ranks that `parent`, which has become mpiexec, started; rank by rank."""
    ranks = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
            with open(f"/proc/{entry}/stat") as file:
                ours = int(file.read().rsplit(")", 1)[1].split()[1]) == parent
        except OSError:
            continue
        if ours and b"OMPI_COMM_WORLD_RANK" in variables:
            ranks[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(entry)
    return ranks
