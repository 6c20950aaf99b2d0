# SPDX-License-Identifier: Apache-2.0
"""From readings to findings: all judges, each a function of the readings alone."""

from baton import words
from baton.doctor import gpus, links, load, placement, ranks
from baton.doctor.findings import NOTE, PROBLEM, Finding

TIMER_SECONDS = 250e-9  # one reading of the clock
SHARED_MEMORY = 128 << 20  # bytes that /dev/shm has free


def findings_of(readings):
    """Returns the findings of all judges, problems first. Readings that could not be taken are the only finding."""
    if readings["failure"]:
        return [Finding(PROBLEM, "host", [], f"the ranks ended before the examination did: {readings['failure']}",
                        "mend this first; ./run bench will end in the same way")]
    judges = (ranks.judge, links.judge, ranks.judge_clocks, gpus.judge, load.judge, placement.judge, judge_build, judge_system)
    return sorted((found for judge in judges for found in judge(readings)), key=lambda one: one.weight == NOTE)


def is_fit(findings):
    return all(one.weight != PROBLEM for one in findings)


def judge_build(readings):
    build, here = readings["build"], max((host["gpus"] for host in readings["hosts"]), default=0)
    for executor in build["executors"] if here else []:
        if executor["lacks"]:
            yield Finding(PROBLEM, "build", [], f"executor {executor['name']} cannot run: {executor['lacks']}",
                          "nvidia-smi shows whether the driver sees the GPUs; a container must be given them")
    if here and all(executor["name"] != "nccl" for executor in build["executors"]):
        yield Finding(PROBLEM, "build", [],
                      f"this host has {words.count(here, 'GPU')}, and the build no executor for them (nccl, peer)",
                      "install nvcc 12.4 or newer and NCCL 2.28 or newer, then ./run bench builds them")
    if build["type"] != "Release":
        yield Finding(PROBLEM, "build", [], f"this build is of type '{build['type']}', whose times are not the machine's",
                      "cmake --preset cpu and cuda build Release, as ./run bench does")


def judge_system(readings):
    for host in readings["hosts"]:
        if host["timer_seconds"] > TIMER_SECONDS:
            yield Finding(NOTE, "host", [], f"one reading of the clock takes {words.seconds(host['timer_seconds'])} "
                          f"(clock source {host['clock_source']})",
                          "short times are too long by as much; clock source tsc is faster")
        if 0 <= host["shared_memory_bytes"] < SHARED_MEMORY:
            yield Finding(NOTE, "host", [], f"/dev/shm has {host['shared_memory_bytes'] >> 20} MiB free",
                          "MPI and NCCL put their messages there; docker: --shm-size=1g or --ipc=host")
