# SPDX-License-Identifier: Apache-2.0
"""Pairs of ranks, by the times of their messages.

  usual time of a pair:  the lower quartile, in the same repeat, of the other pairs that are at least as far apart
  slow:                  its messages take longer than usual by a limit, in most repeats
  all pairs of a rank:   one finding about that rank
"""

import collections

from baton.doctor import ranks
from baton.doctor.findings import NOTE, PROBLEM, Finding, exceeds, times, typical
from baton.doctor.placement import DISTANCES, OTHER_HOST, distances, is_crowded
from baton.words import seconds

SMALL, LARGE = 1.0, 0.5  # the parts by which small and large messages of a slow pair exceed those of others
LEAST_SECONDS = 1e-6  # the smallest difference of two times that counts
HOST_SECONDS, HOST_RATE = 20e-6, 0.5e9  # the latency and the bytes a second that any pair of one host keeps
DEVICE_RATE = 10e9  # what GPUs that do not go through the host's memory exceed

Slow = collections.namedtuple("Slow", "pair distance seconds usual")


def judge(readings):
    crowded = any(is_crowded(readings, host) for host in readings["hosts"])
    late = set() if crowded else {*ranks.late(readings), *ranks.waiting(readings)}  # which explains slow messages
    for links in readings["links"]:
        pairs = list(zip(links["pairs"], distances(readings, links)))
        if not links["is_device"]:
            pairs = [(pair, distance) for pair, distance in pairs if not late & {pair["from"], pair["to"]}]
        small = list(slow_pairs(pairs, "latency_seconds", SMALL))
        found = {id(one.pair) for one in small}
        large = [one for one in slow_pairs(pairs, "large_seconds", LARGE) if id(one.pair) not in found]
        yield from _findings(links, pairs, small, links["small_bytes"])
        yield from _findings(links, pairs, large, links["large_bytes"])
        if not (crowded or small or large):
            yield from _far_below(links, pairs)


def slow_pairs(pairs, kind, limit):
    far = {apart: [sorted(repeat) for repeat in zip(*(pair[kind] for pair, distance in pairs if distance >= apart))]
           for apart in DISTANCES}
    for pair, distance in pairs:
        usual = [_usual(own, others) for own, others in zip(pair[kind], far[distance]) if len(others) > 1]
        excess = [own / least - 1 if least > 0 else 0 for own, least in zip(pair[kind], usual)]
        if exceeds(excess, limit) and typical(pair[kind]) - typical(usual) >= LEAST_SECONDS:
            yield Slow(pair, distance, typical(pair[kind]), typical(usual))


def _usual(own, ascending):
    """The lower quartile of sorted times without the pair's own."""
    quartile = (len(ascending) - 1) // 4
    return ascending[quartile + (own <= ascending[quartile])]


def _has(pair, rank):
    return rank in (pair["from"], pair["to"])


def _findings(links, pairs, slow, size):
    message = f"{size} bytes" if size < 1 << 20 else f"{size >> 20} MiB"
    for rank in range(links["ranks"]):
        own = [one for one in slow if _has(one.pair, rank)]
        if len(own) > 1 and len(own) == sum(_has(pair, rank) for pair, _ in pairs):
            yield Finding(PROBLEM, "link", [rank], f"all links of rank {rank} are slow ({links['executor']}): {message} take "
                          f"{seconds(own[0].seconds)}, between others {seconds(own[0].usual)}", _advice(links, own[0]))
            slow = [one for one in slow if not _has(one.pair, rank)]
    for one in slow:
        one_end, other = one.pair["from"], one.pair["to"]
        yield Finding(PROBLEM, "link", [one_end, other], f"the link of ranks {one_end} and {other} is slow ({links['executor']}): "
                      f"{message} take {seconds(one.seconds)}, between others {seconds(one.usual)} "
                      f"({times(one.seconds / one.usual - 1)})", _advice(links, one))


def _advice(links, slow):
    if slow.distance == OTHER_HOST:
        return "look at the network between these two hosts: cables, ports, a route that is shared with others"
    if links["is_device"]:
        return "nvidia-smi topo -m and nvidia-smi nvlink -s show the path and links that are down"
    return "look what else uses these two cores and the memory between them; numactl --hardware shows distances"


def _far_below(links, pairs):
    """Pairs of one host that are slower than any pair of one host should be, even if there is none to compare with."""
    for pair, distance in pairs:
        if distance == OTHER_HOST or not pair["large_seconds"]:
            continue
        ends, latency = [pair["from"], pair["to"]], typical(pair["latency_seconds"])
        rate = links["large_bytes"] / typical(pair["large_seconds"])
        if links["is_device"] and rate < DEVICE_RATE:
            yield Finding(NOTE, "link", ends, f"GPUs {ends[0]} and {ends[1]} exchange {rate * 1e-9:.1f} GB/s ({links['executor']})",
                          "it seems to go through the host's memory: nvidia-smi topo -p2p r shows why")
        if not links["is_device"] and (latency > HOST_SECONDS or rate < HOST_RATE):
            yield Finding(PROBLEM, "link", ends, f"ranks {ends[0]} and {ends[1]} of one host exchange 8 bytes in {seconds(latency)} "
                          f"and {rate * 1e-9:.2f} GB/s ({links['executor']})",
                          "shared memory is faster: does an OMPI_MCA_... or UCX_... variable turn it off?")
