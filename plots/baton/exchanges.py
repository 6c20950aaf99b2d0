# SPDX-License-Identifier: Apache-2.0
"""The exclusive scans of one machine at one rank count and timing, every method at every size of the state.

Methods of several executors stand beside one another here, since GPUs run them all from one start line. Times are
compared within one launch: that with most points; what it lacks comes of others and is marked.
"""

import collections

from baton import results

# The same name on another executor is another method.
Method = collections.namedtuple("Method", "name executor")

FUSED = Method("all_scan_fused", "peer")
INTERPRETED = Method("all_scan", "peer")
NARROW = Method("all_scan_fused", "peer_bf16")
LASP1 = Method("ring_scan", "nccl")
LASP2 = Method("nccl_all_gather_scan", "nccl")
LASP2_WINDOW = Method("nccl_all_gather_scan_window", "nccl")

# The names of these methods in figures.
TITLES = {FUSED: "All-Scan, hand-tuned kernel", INTERPRETED: "All-Scan, interpreted",
          NARROW: "All-Scan, bf16 on the wire", LASP2: "LASP-2, ncclAllGather",
          LASP2_WINDOW: "LASP-2, ncclAllGather, windows", LASP1: "LASP-1, ncclSend and ncclRecv"}

BASE = FUSED  # the method that the others are compared with
BOUND_TIMING = "isolated"  # the bound includes an empty round, which rounds back to back share

KIND, DIRECTION = "exclusive_scan", "forward"
ELSEWHERE = "*"  # marks a record of another launch than the others


class Sweep:
    """What a table of sizes has: `found` is {(method, state bytes): record}, `run` the launch of most of them."""

    def __init__(self, records):
        self.run = widest_run(records)
        self.found = {}
        for record in sorted(records, key=self._worth):
            self.found[method(record), record["state_bytes"]] = record

    def _worth(self, record):
        """Orders records: the launch `run`, then the model's blocks, then the fastest, then the newest is best."""
        chosen = record.get("blocks_asked") == "auto"
        return record["run"] == self.run, chosen, 0 if chosen else -record["median_seconds"], record["time"]

    def sizes(self):
        return sorted({size for _, size in self.found})

    def methods(self):
        """Returns the methods by transport, All-Scan first, then by name."""
        order = list(TITLES)
        return sorted({one for one, _ in self.found}, key=lambda one: (
            one.executor.startswith("nccl"), order.index(one) if one in order else len(order), one))

    def at(self, one, size):
        return self.found.get((one, size))

    def elsewhere(self, *records):
        """Returns the mark of a record, or of a ratio of two, of another launch."""
        return ELSEWHERE if any(record["run"] != self.run for record in records) else ""

    def records(self):
        return list(self.found.values())


def method(record):
    return Method(record["name"], record["executor"])


def title(one):
    return TITLES.get(one, f"{one.name}, {one.executor}")


def widest_run(records):
    """Returns the launch with most points, and among equals the newest."""
    runs = collections.defaultdict(set)
    for record in records:
        runs[record["run"]].add((method(record), record["state_bytes"]))
    newest = {record["run"]: record["time"] for record in records}
    return max(runs, key=lambda run: (len(runs[run]), newest[run]))


def on_gpus(record):
    return bool(record.get("device"))


def sweeps(records):
    """Returns {(ranks, timing): its Sweep} of the scans that have a time, each rank with a GPU of its own."""
    groups = collections.defaultdict(list)
    for record in records:
        if (record.get("kind"), record.get("direction")) == (KIND, DIRECTION) and record["ranks"] > 1 \
                and results.why_no_time(record) is None and not results.crowded(record):
            groups[record["ranks"], record["cadence"]].append(record)
    return {place: Sweep(group) for place, group in sorted(groups.items())}
