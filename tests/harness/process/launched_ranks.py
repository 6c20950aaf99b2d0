# SPDX-License-Identifier: Apache-2.0
"""The processes of a bench that launched its ranks itself."""

import os
import time


def parent_of(process):
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def processes_of(bench):
    """The process ids of the ranks of the launch that `bench` has started, rank by rank."""
    ranks = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = dict(pair.split(b"=", 1) for pair in file.read().split(b"\0") if b"=" in pair)
            ours = b"OMPI_COMM_WORLD_RANK" in variables and parent_of(parent_of(entry)) == bench
        except OSError:
            continue
        if ours:
            ranks[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(entry)
    return ranks


def processor_seconds(process):
    """The processor time that a process has used."""
    with open(f"/proc/{process}/stat") as file:
        user, system = file.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def wait_until_busy(processes, seconds, deadline=60):
    """Waits until each process has used `seconds` more of a processor than now, at most `deadline` seconds."""
    before = {process: processor_seconds(process) for process in processes}
    wait_until(lambda: all(processor_seconds(process) - used >= seconds for process, used in before.items()), deadline)


def wait_until(condition, deadline):
    """Waits until `condition` holds. Raises TimeoutError after `deadline` seconds."""
    ends = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > ends:
            raise TimeoutError(f"the condition did not hold within {deadline} s")
        time.sleep(0.02)
