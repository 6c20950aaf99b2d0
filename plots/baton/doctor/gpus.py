# SPDX-License-Identifier: Apache-2.0
"""GPUs, by equal work on each and by what their driver says of them."""

from baton.doctor.findings import NOTE, PROBLEM, Finding, exceeds, excesses, mean, times, typical
from baton.doctor.ranks import CLOCK_BESIDE, LATE
from baton.words import seconds

COOLING = "look at the cooling, and at other jobs in the same chassis (nvidia-smi -q -d PERFORMANCE)"
SUPPLY = "look at the power supply and its cables (nvidia-smi -q -d PERFORMANCE)"
# Bits of NVML's reasons for lower clocks (nvmlClocksThrottleReason* of its reference manual).
REASONS = {0x08: (PROBLEM, "the hardware, for heat or power", COOLING), 0x20: (PROBLEM, "the driver, for heat", COOLING),
           0x40: (PROBLEM, "the hardware, for heat", COOLING), 0x80: (PROBLEM, "the power supply (power brake)", SUPPLY),
           0x02: (NOTE, "a setting (application clocks)", "fine if it is meant so; else nvidia-smi -rac"),
           0x04: (NOTE, "its power limit", "usual under full load; nvidia-smi -q -d POWER shows the limit")}


def judge(readings):
    """Yields findings about GPUs that are late, throttled or unlike the others of their executor."""
    every = [(rank["rank"], device) for rank in readings["ranks"] for device in rank["devices"]]
    for executor in sorted({device["executor"] for _, device in every}):
        group = [(rank, device) for rank, device in every if device["executor"] == executor]
        devices = [device for _, device in group]
        for (rank, device), excess in zip(group, excesses([device["work_seconds"] for device in devices])):
            yield from _late(devices, rank, device, excess)
            yield from _throttled(rank, device)
            yield from _low_clock(devices, rank, device, "sm_clock_mhz", "clock")
            yield from _low_clock(devices, rank, device, "memory_clock_mhz", "memory clock")
            if value(device, "sm_clock_mhz", 0) < 0:
                yield Finding(NOTE, "clock", [rank], f"the clocks of rank {rank}'s GPU cannot be read",
                              "libnvidia-ml.so.1 comes with the driver; a container must be given it")


def value(device, name, otherwise=-1):
    """The typical value of a reading of the device's driver; -1 if it is unknown."""
    return typical(device["values"].get(name), otherwise)


def _clock(device):
    mhz = value(device, "sm_clock_mhz")
    return "" if mhz < 0 else f", at {mhz:.0f} MHz"


def _late(group, rank, device, excess):
    if exceeds(excess, LATE):
        fastest = min(typical(other["work_seconds"]) for other in group)
        yield Finding(PROBLEM, "rank", [rank], f"the GPU of rank {rank} is late: the same work takes it "
                      f"{seconds(typical(device['work_seconds']))}, the fastest {seconds(fastest)} ({times(typical(excess))})"
                      f"{_clock(device)}", "nvidia-smi shows other processes on it, its clocks and its errors (-q)")


def _throttled(rank, device):
    for bit, (weight, reason, advice) in REASONS.items():
        if mean([found > 0 and int(found) & bit != 0 for found in device["values"].get("throttle_reasons", [])]) >= 0.5:
            yield Finding(weight, "clock", [rank], f"the GPU of rank {rank} is throttled by {reason}{_clock(device)}", advice)


def _low_clock(group, rank, device, name, noun):
    highest = max(value(other, name) for other in group)
    if highest > 0 and exceeds([1 - mhz / highest if mhz > 0 else 0 for mhz in device["values"].get(name, [])], CLOCK_BESIDE):
        yield Finding(PROBLEM, "clock", [rank], f"the {noun} of rank {rank}'s GPU is {value(device, name):.0f} MHz, that of another "
                      f"{highest:.0f} MHz", "nvidia-smi -q -d CLOCK,PERFORMANCE says why; nvidia-smi -rgc lifts a locked clock")
