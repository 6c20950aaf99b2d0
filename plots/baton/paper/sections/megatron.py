# SPDX-License-Identifier: Apache-2.0
"""Megatron's sequence parallelism of an attention layer, as the collectives that move its hidden states.

Its ranks share the heads and not the tokens, so it is no method of operator_bench. Forward, all hidden states are gathered,
and the partial outputs are reduced and scattered. Backward, the gradients of the output are gathered and those of the
input are reduced and scattered, and the input is gathered once more, since a rank kept its own tokens alone.
"""

from baton import results
from baton.paper.sources import H100

NAME = "megatron_sp"
GATHER, SCATTER = "ring_all_gather", "ring_reduce_scatter"
TIMES = {"forward": {GATHER: 1, SCATTER: 1}, "backward": {GATHER: 2, SCATTER: 1}}  # arXiv 2205.05198, section 4.2.2
D_V = 1023  # so that a packed map of one head of 1 x D_V, a decay and a state, has 4096 bytes


def arguments(tokens, heads, width):
    """The arguments that give a rank's contribution the bytes of its hidden states in bf16."""
    return (f"--collectives {GATHER},{SCATTER} --heads {maps_of(tokens, heads, width)} --d-k 1 --d-v {D_V}")


def maps_of(tokens, heads, width):
    return tokens * heads * width * 2 // (4 * (1 + D_V))


def records(sources, ranks, lengths, heads, width):
    """Returns what stands for records of operator_bench: both passes at these lengths of the whole sequence."""
    found = {(one["name"], one["heads"]): one for one in sources.on(H100, ranks=ranks, d_k=1, d_v=D_V)
             if results.why_no_time(one) is None}
    made = []
    for length in lengths:
        of_size = {name: found.get((name, maps_of(length // ranks, heads, width))) for name in (GATHER, SCATTER)}
        if None not in of_size.values():
            made += [as_layer(of_size, which, tokens=length // ranks, heads=heads, d_k=width, d_v=width) for which in TIMES]
    return made


def as_layer(of_size, which, **shape):
    sums = {key: sum(times * of_size[name][key] for name, times in TIMES[which].items())
            for key in ("sent_bytes", "messages", "hops", "median_seconds")}
    return {**of_size[GATHER], "name": NAME, "pass": which, **shape, **sums}
