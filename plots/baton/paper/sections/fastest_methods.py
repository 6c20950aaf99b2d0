# SPDX-License-Identifier: Apache-2.0
"""Which method is the fastest where: ranks against tokens of a rank, softmax and linear attention apart, and a stack of both."""

from baton import fastest, results, stacks
from baton.paper.page import Section, Text
from baton.paper.sections import maps
from baton.paper.sections.maps import BLOCKS
from baton.paper.sources import H100

RANKS = (4, 8, 16, 32, 64)
TOKENS = (512, 2048, 8192, 32768, 131072)  # of a rank
HEADS = 32
SOFTMAX, LINEAR, HYBRID = "softmax", "linear", "hybrid"
LAYOUTS = {stacks.CONTIGUOUS: "all contiguous", stacks.ZIGZAG: "all zigzag", stacks.MOVED: "softmax zigzag, moved between"}
TITLES = {SOFTMAX: "softmax attention", LINEAR: "linear attention",
          HYBRID: f"a stack of one softmax layer and {stacks.LINEAR_LAYERS} linear ones"}


def section(sources):
    found = maps_of(sources)
    return Section("Which method wins where", [
        Text(f"One layer, forward and backward, {HEADS} heads of 128 in bf16, on `topologies/{H100}.json`: every method "
             "that is registered and runs there, by ranks and tokens of a rank. A state that is cut has "
             f"{BLOCKS} blocks. A difference below {100 * fastest.TYPICAL_ERROR:.0f} %, the typical error of predictions "
             "of machines that were measured (docs/results.md), is none. For a machine of yours: `./run advise`."),
        *(maps.figure(f"fastest_{kind}", TITLES[kind], f"simulated: {H100}", one,
                      "the fastest method, of a stack that of its softmax layer") for kind, one in found.items()),
        *(maps.methods_table(f"fastest_{kind}", TITLES[kind], one) for kind, one in found.items()),
        Text("Causal softmax is balanced with zigzag tokens, and a linear layer of such tokens is a chain of twice as many "
             "pieces, each half as long. So all layers of a stack have contiguous tokens, or all have zigzag ones, or hidden states of "
             f"{HEADS} * 128 channels move before and after each softmax layer, in both passes (`{stacks.MOVE}`, waited for "
             "at once). The stack of each layout is the fastest of its own. Methods of another layout, striped or a grid whose "
             "groups are zigzag (`usp_zigzag`), are in no stack."),
        layouts_table(stacks_of(sources))])


def maps_of(sources):
    """{kind: {(ranks, tokens of a rank): fastest.Fastest}}"""
    times = {kind: {place: {one["name"]: one["median_seconds"] for one in found} for place, found in layers(sources, kind).items()}
             for kind in (SOFTMAX, LINEAR)}
    times[HYBRID] = {place: times_of(found) for place, found in stacks_of(sources).items()}
    return {kind: {place: fastest.among(found) for place, found in sorted(places.items()) if found} for kind, places in times.items()}


def layers(sources, kind):
    """{(ranks, tokens of a rank): [record]} of the methods with as many heads of keys as of queries."""
    return {place: some for place, found in maps.layers(sources, H100, RANKS, TOKENS, heads=HEADS, attention=kind).items()
            if (some := [one for one in found if results.kv_heads(one) == HEADS])}


def stacks_of(sources):
    """{(ranks, tokens of a rank): [stacks.Stack]}"""
    channels = stacks.heads_of_move(HEADS, 128, "bf16")
    moves = {(one["ranks"], one["tokens"]): one for one in sources.on(H100, name=stacks.MOVE, heads=channels, d_k=1)
             if results.why_no_time(one) is None}
    linear = layers(sources, LINEAR)
    return {place: list(stacks.all_of(found, linear[place], moves.get(place))) for place, found in layers(sources, SOFTMAX).items()
            if place in linear}


def layouts_table(found):
    """The fastest stack of each layout, in ms, by ranks and tokens."""
    return maps.table("layouts_of_stacks", f"What the layout of tokens costs {TITLES[HYBRID]}, simulated, ms", found,
                      "{:,} tokens".format, {LAYOUTS[layout]: lambda some, layout=layout: layout_cell(some, layout)
                                             for layout in stacks.LAYOUTS}, ["Tokens are those of a rank."])


def times_of(found):
    """{name: seconds} of some Stacks."""
    return {one.name: stacks.total(one, "median_seconds") for one in found}


def layout_cell(some, layout):
    """The time of the fastest of the stacks with this layout."""
    one = fastest.among(times_of(stack for stack in some or () if stack.layout == layout))
    cell = maps.time_cell(one)
    return cell and cell._replace(note=one.name)
