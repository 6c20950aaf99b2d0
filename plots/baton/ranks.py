# SPDX-License-Identifier: Apache-2.0
"""The ranks of a program that no launcher started: processes of this host, which the program starts itself."""

import os
import socket
import subprocess
import sys
import time

MOST = 4  # ranks by default
GRACE_SECONDS = 10  # in which the others end by themselves when one has failed


def wanted(arguments, cores):
    """The ranks that `--ranks` asks for at most; as many as there are `cores`, 2 to MOST, if it does not."""
    text = ""
    for word, then in zip(arguments, [*arguments[1:], ""]):
        text = then if word == "--ranks" else word.removeprefix("--ranks=") if word.startswith("--ranks=") else text
    numbers = [int(part) for part in text.split(",") if part.isdecimal()]
    return max(numbers, default=max(2, min(MOST, cores)))


def run(size):
    """Runs this program once for each rank, with torchrun's variables. Returns the exit code of one that failed, or 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
              "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", 1), "BATON_LAUNCH": "tcp"}
    processes = []
    try:
        for rank in range(size):
            own = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            processes.append(subprocess.Popen([sys.executable, *sys.orig_argv[1:]], env={**os.environ, **own}))
        return first_failure(processes)
    except KeyboardInterrupt:  # which the ranks have heard too
        for process in processes:
            process.wait()
        return 130
    finally:
        for process in processes:
            process.kill()


def first_failure(processes):
    """Waits for all of them, or until GRACE_SECONDS after one has failed. Returns the exit code of the lowest rank that has."""
    until = float("inf")
    while None in (codes := [process.poll() for process in processes]) and time.monotonic() < until:
        if any(codes):
            until = min(until, time.monotonic() + GRACE_SECONDS)
        time.sleep(0.02)
    code = next(filter(None, codes), 0)
    return code if code >= 0 else 128 - code
