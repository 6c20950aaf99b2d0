# SPDX-License-Identifier: Apache-2.0
"""The least times that the links of a topology allow, by the figures in its file alone."""

import json
import pathlib

from baton import files

TOPOLOGIES = pathlib.Path(__file__).resolve().parents[3] / "topologies"


class Links:
    """The rates (bytes a second) and times (seconds) of the links of one topology."""

    def __init__(self, name, folder=TOPOLOGIES):
        described = json.loads(files.reading(folder / f"{name}.json").read_text(encoding="utf-8"))
        inside = described["links"]["intra_node"]
        between = described["links"].get("inter_node", inside)  # a single node has no other link
        self.ranks_per_node = described["machine"]["ranks_per_node"]
        self.inside = inside["bytes_per_second"]
        self.card = between["bytes_per_second"]
        self.inside_latency = inside["latency_seconds"]
        self.card_latency = between["latency_seconds"]

    def gather_seconds(self, ranks, own_bytes):
        """Returns the least time of an all-gather: all bytes come in through a rank's port, those of other nodes
        through the cards of its node."""
        port = (ranks - 1) * own_bytes / self.inside
        cards = max(0, ranks - self.ranks_per_node) * own_bytes / (self.ranks_per_node * self.card)
        return max(port, cards)

    def chain_seconds(self, ranks, state_bytes):
        """Returns the least time of a chain in any number of blocks: every hop's latency, and the state once
        through the slowest link."""
        crossings = (ranks - 1) // self.ranks_per_node
        latencies = crossings * self.card_latency + (ranks - 1 - crossings) * self.inside_latency
        return latencies + state_bytes / (self.card if crossings else self.inside)
