# SPDX-License-Identifier: Apache-2.0
"""What else uses the cores of ranks: other processes, a hypervisor, a quota."""

from baton.doctor.findings import NOTE, PROBLEM, Finding, exceeds, mean, numbered, percent, typical
from baton.doctor.placement import physical_cores, ranks_on

BUSY = 0.10  # the part of a core's time that other processes use while all ranks sleep
STOLEN = 0.05  # the part of a core's time that a hypervisor takes while ranks compute
NAMED, LEAST_CORES = 3, 0.05  # processes that a finding names, and what such a process uses at least


def judge(readings):
    for host in readings["hosts"]:
        ranks = {core["number"]: _ranks_at(readings, host, core) for core in host["cores"]}
        yield from _busy(host, ranks)
        yield from _stolen(host, ranks)
        yield from _quota(host, len(ranks_on(readings, host)))


def _ranks_at(readings, host, core):
    """The ranks that may run on the physical core of a core."""
    wanted = physical_cores(host, [core["number"]])
    return [rank["rank"] for rank in ranks_on(readings, host) if wanted <= physical_cores(host, rank["cores"])]


def _busy(host, ranks):
    busiest = ", ".join(f"process {one['number']} ({one['name']}, {one['cores']:.1f} cores)"
                        for one in host["others"][:NAMED] if one["cores"] >= LEAST_CORES)
    busiest = f"; busiest: {busiest}" if busiest else ""
    busy = [core for core in host["cores"] if ranks[core["number"]] and exceeds(core["busy"], BUSY)]
    if busy:
        concerned = [rank for core in busy for rank in ranks[core["number"]]]
        most = percent(max(typical(core["busy"]) for core in busy))
        yield Finding(PROBLEM, "load", concerned, f"other processes use {numbered('core', [core['number'] for core in busy])} {most} "
                      f"of the time while all ranks sleep; {numbered('rank', concerned)} may run there{busiest}",
                      "end them, wait for them, or leave their cores to them")
    elsewhere = sum(typical(core["busy"]) for core in host["cores"] if not ranks[core["number"]])
    if elsewhere >= max(0.5, 0.05 * len(host["cores"])):
        yield Finding(NOTE, "load", [], f"other processes use {elsewhere:.1f} cores where no rank runs{busiest}",
                      "they share caches, memory and the power limit; end them if you can")


def _stolen(host, ranks):
    stolen = [core for core in host["cores"] if ranks[core["number"]] and mean(core["stolen"]) >= STOLEN]
    if stolen:
        most = percent(max(mean(core["stolen"]) for core in stolen))
        yield Finding(PROBLEM, "load", [rank for core in stolen for rank in ranks[core["number"]]],
                      f"the hypervisor takes up to {most} of the time of {numbered('core', [core['number'] for core in stolen])} away",
                      "take a machine with cores of its own, or measure at a calmer hour")


def _quota(host, ranks):
    if host["quota_stops"] or 0 < host["quota_cores"] < ranks:
        limit = f" to {host['quota_cores']:.1f} cores" if host["quota_cores"] > 0 else ""
        yield Finding(PROBLEM, "load", [], f"processor time is limited{limit} by a quota, and the ranks were held back "
                      f"{host['quota_stops']} times meanwhile",
                      "ask the container, job or service for more (docker: --cpus), or take fewer --ranks")
