# SPDX-License-Identifier: Apache-2.0
"""Starts a program as torchrun or srun would, without either: N processes with the variables that they set.

  python3 torchrun_like.py N PROGRAM [ARGUMENTS...]       runs it, passes its output on, and ends with its worst exit code
"""

import contextlib
import os
import random
import socket
import subprocess
import sys

INHERITED = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_")


def free_port(ports=17):
    """The first of `ports` ports in a row that are free. They are below those that the system gives to connections."""
    while True:
        first = random.randrange(20000, 32000)
        with contextlib.ExitStack() as all_of_them, contextlib.suppress(OSError):
            for port in range(first, first + ports):
                all_of_them.enter_context(socket.socket()).bind(("", port))
            return first


def torch_variables(rank, size, port):
    return {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port}


def slurm_variables(rank, size, port):
    """As in a step of the job `port` that srun started on one host without a plugin of MPI."""
    return {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NTASKS": size, "SLURM_STEP_NUM_TASKS": size,
            "SLURM_STEP_TASKS_PER_NODE": size, "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": port, "SLURM_STEP_ID": 0,
            "SLURM_SRUN_COMM_PORT": port}


def start(size, command, variables=torch_variables, ranks=None, extra=None, **popen):
    """The processes of `ranks` (all, if it is None), by rank."""
    port = free_port()
    outer = {name: value for name, value in os.environ.items() if not name.startswith(INHERITED)}
    return {rank: subprocess.Popen(
        command, env={**outer, **{name: str(value) for name, value in variables(rank, size, port).items()}, **(extra or {})},
        **popen) for rank in (range(size) if ranks is None else ranks)}


def main():
    processes = start(int(sys.argv[1]), sys.argv[2:])
    sys.exit(max(process.wait() for process in processes.values()))


if __name__ == "__main__":
    main()
