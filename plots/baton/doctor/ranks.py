# SPDX-License-Identifier: Apache-2.0
"""Ranks that are late with equal work, ranks that wait for their cores, and the clocks of their cores."""

from baton import words
from baton.doctor.findings import NOTE, PROBLEM, Finding, exceeds, excesses, mean, numbered, percent, times, typical
from baton.doctor.load import STOLEN
from baton.doctor.placement import host_of, is_crowded, own_core

LATE = 0.10  # the part by which a rank's time for the same work exceeds the fastest rank's
WAITED = 0.05  # the part of a rank's time for which other threads have its core
CLOCK = 0.05  # the part by which a clock is below the base clock of its core
CLOCK_BESIDE = 0.10  # the part by which a clock is below those of other ranks


def late(readings):
    """{rank: the part by which its time exceeds the fastest rank's, in each repeat}, of those that are late."""
    all_ranks = readings["ranks"]
    return {rank["rank"]: excess for rank, excess in zip(all_ranks, excesses([rank["spin_seconds"] for rank in all_ranks]))
            if exceeds(excess, LATE)}


def waiting(readings):
    return {rank["rank"] for rank in readings["ranks"] if exceeds(rank["waited"], WAITED)}


def judge(readings):
    """Yields findings about late and waiting ranks, but of hosts where ranks wait for one another."""
    are_late, wait = late(readings), waiting(readings)
    ranks = [rank for rank in readings["ranks"] if not is_crowded(readings, host_of(readings, rank))]
    for rank in ranks:
        if rank["rank"] in are_late:
            cause, advice = _cause(readings, rank)
            fastest = min(typical(one["spin_seconds"]) for one in readings["ranks"])
            yield Finding(PROBLEM, "rank", [rank["rank"]], f"rank {rank['rank']} is late: the same work takes it "
                          f"{words.seconds(typical(rank['spin_seconds']))}, the fastest rank {words.seconds(fastest)} "
                          f"({times(typical(are_late[rank['rank']]))}){cause}", advice)
    only_wait = [rank for rank in ranks if rank["rank"] in wait and rank["rank"] not in are_late]
    if only_wait:
        numbers = [rank["rank"] for rank in only_wait]
        cores = [core["number"] for core in (own_core(host_of(readings, rank), rank) for rank in only_wait) if core]
        named = f" ({', '.join(f'core {core}' for core in cores)})" if cores else ""
        do = "waits for its core" if len(numbers) == 1 else "wait for their cores"
        most = percent(max(typical(rank["waited"]) for rank in only_wait))
        yield Finding(PROBLEM, "rank", numbers, f"{numbered('rank', numbers)} {do}{named}; other threads run there for up to {most} "
                      "of the time", "end the other threads, or bind the ranks to other cores")


def _cause(readings, rank):
    """Why a rank is late, and the advice."""
    core = own_core(host_of(readings, rank), rank)
    place = f"core {core['number']}" if core else "its core"
    clock = typical(rank["clock_mhz"])
    usual = typical([typical(one["clock_mhz"]) for one in readings["ranks"] if one["clock_mhz"]])
    if exceeds(rank["waited"], WAITED):
        return (f"; another thread had {place} for {percent(typical(rank['waited']))} of that time",
                f"end what else runs on {place}, or bind the ranks to other cores")
    if 0 < clock < (1 - CLOCK_BESIDE) * usual:
        return (f"; its clock is {clock:.0f} MHz, the usual one here {usual:.0f} MHz",
                "look for heat, for a power limit and for the settings of the clock (cpupower frequency-info)")
    if core and mean(core["stolen"]) >= STOLEN / 2:
        return (f"; the hypervisor took {place} for {percent(mean(core['stolen']))} of that time",
                "take a machine with cores of its own, or measure at a calmer hour")
    return "", f"look what else uses {place}, its hyperthread and its host; if it stays late, leave {place} out"


def judge_clocks(readings):
    """Yields findings about cores whose clocks are low, slowed by heat or limited by a setting."""
    for rank in readings["ranks"]:
        # Some processors reach no more than half of the highest clock when all cores are busy.
        expected = rank["base_mhz"] if rank["base_mhz"] > 0 else rank["most_mhz"] / 2
        if expected > 0 and exceeds([1 - mhz / expected for mhz in rank["clock_mhz"]], CLOCK):
            governor = f" (governor {rank['governor']})" if rank["governor"] else ""
            yield Finding(PROBLEM, "clock", [rank["rank"]], f"the core of rank {rank['rank']} runs at {typical(rank['clock_mhz']):.0f} "
                          f"MHz under load, at least {expected:.0f} are expected{governor}",
                          "look for heat and power limits; cpupower frequency-set -g performance")
        if rank["heat_events"] > 0:
            yield Finding(PROBLEM, "clock", [rank["rank"]],
                          f"heat slowed the core of rank {rank['rank']} {rank['heat_events']} times meanwhile",
                          "let it cool down, and look at fans and dust")
        if 0 < rank["allowed_mhz"] < (1 - CLOCK) * rank["most_mhz"]:
            yield Finding(NOTE, "clock", [rank["rank"]], f"the core of rank {rank['rank']} is limited to {rank['allowed_mhz']:.0f} of "
                          f"its {rank['most_mhz']:.0f} MHz", "fine if it is meant so; else cpupower frequency-set -u")
