# SPDX-License-Identifier: Apache-2.0
"""Where ranks may run: on which cores, beside which other ranks, how near to their memory and to one another."""

import collections

from baton import words
from baton.doctor.findings import PROBLEM, Finding, numbered

SAME_CACHE, SAME_PACKAGE, SAME_HOST, OTHER_HOST = DISTANCES = range(4)


def host_of(readings, rank):
    return next(host for host in readings["hosts"] if host["host"] == rank["host"])


def ranks_on(readings, host):
    return [rank for rank in readings["ranks"] if rank["host"] == host["host"]]


def logical_cores(ranks):
    return {core for rank in ranks for core in rank["cores"]}


def physical_cores(host, logical):
    """The physical cores of logical ones, each named by the lowest logical core of it."""
    physical = {core["number"]: core["physical"] for core in host["cores"] if core["physical"] >= 0}
    return {physical.get(number, number) for number in logical}


def own_core(host, rank):
    """The core that a bound rank runs on: its lowest one; None if it may use several physical cores."""
    if len(physical_cores(host, rank["cores"])) != 1:
        return None
    return next((core for core in host["cores"] if core["number"] == min(rank["cores"])), None)


def is_crowded(readings, host):
    """True if a host has more ranks than cores that they may use, so that they wait for one another."""
    ranks = ranks_on(readings, host)
    return len(ranks) > len(logical_cores(ranks)) > 0


def distances(readings, links):
    """How far apart the two ranks of each pair are; SAME_HOST also if more is not known. GPUs share no cache."""
    ranks = readings["ranks"]
    cores = [own_core(host_of(readings, rank), rank) for rank in ranks]
    return [_distance(ranks[pair["from"]], ranks[pair["to"]], links["is_device"], cores[pair["from"]], cores[pair["to"]])
            for pair in links["pairs"]]


def _distance(one, other, is_device, core, other_core):
    if one["host"] != other["host"]:
        return OTHER_HOST
    if is_device or core is None or other_core is None:
        return SAME_HOST
    if core["cache"] == other_core["cache"] >= 0:
        return SAME_CACHE
    return SAME_PACKAGE if core["package"] == other_core["package"] >= 0 else SAME_HOST


# --- Findings -------------------------------------------------------------------------------------------


def judge(readings):
    """Yields findings about ranks that share cores, may move, or have their memory elsewhere."""
    for host in readings["hosts"]:
        ranks = ranks_on(readings, host)
        if is_crowded(readings, host):
            most = len(physical_cores(host, logical_cores(ranks)))
            yield _problem(ranks, f"{len(ranks)} ranks share {words.count(most, 'core')} of a host: they wait for one another, and "
                           "their times prove nothing", f"take at most {words.count(most, 'rank')} a host (--ranks)")
        else:
            yield from _unbound(host, ranks)
            yield from _sharing(host, ranks)
            yield from _far_from_memory(host, ranks)


def _problem(ranks, what, advice):
    return Finding(PROBLEM, "binding", [rank["rank"] for rank in ranks], what, advice)


def _unbound(host, ranks):
    """Ranks that may use several physical cores, if others may use these too or if they are all cores of the host."""
    cores = [physical_cores(host, rank["cores"]) for rank in ranks]
    users = collections.Counter(core for own in cores for core in own)
    found = [rank for rank, own in zip(ranks, cores) if len(own) > 1 and (
        max(users[core] for core in own) > 1 or len(rank["cores"]) == len(host["cores"]))]
    if found:
        are, their = ("is", "its") if len(found) == 1 else ("are", "their")
        named = numbered("rank", [rank["rank"] for rank in found])
        yield _problem(found, f"{named} {are} not bound to cores of {their} own: each may run on "
                       f"{numbered('core', logical_cores(found))}, and move in between",
                       "let the benches start the ranks (./run bench ...), or give your mpirun --bind-to core")


def _sharing(host, ranks):
    by_core = collections.defaultdict(list)
    for rank in ranks:
        own = physical_cores(host, rank["cores"])
        if len(own) == 1:
            by_core[min(own)].append(rank)
    most = len(physical_cores(host, logical_cores(ranks)))
    advice = "bind each rank to a core of its own: mpirun --map-by core --bind-to core" if len(ranks) <= most else \
        f"take at most {words.count(most, 'rank')} on this host, one a physical core"
    for core, sharing in sorted(by_core.items()):
        if len(sharing) > 1:
            threads = ", each on a hyperthread of it or on both" if len(logical_cores(sharing)) > 1 else ""
            named = numbered("rank", [rank["rank"] for rank in sharing])
            yield _problem(sharing, f"{named} share core {core}{threads}", advice)


def _far_from_memory(host, ranks):
    for rank in ranks:
        core = own_core(host, rank)
        if core and core["node"] >= 0 and rank["memory_node"] >= 0 and core["node"] != rank["memory_node"]:
            yield _problem([rank], f"the memory of rank {rank['rank']} is on NUMA node {rank['memory_node']}, its core "
                           f"{core['number']} on node {core['node']}", f"look whether node {core['node']} is out of memory, or "
                           "whether numactl or the control group binds the memory elsewhere")
