# SPDX-License-Identifier: Apache-2.0
"""Which method is the fastest where: ranks against tokens of a rank, softmax and linear attention apart, and a stack of both."""

import collections

from baton import fastest, results, stacks
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sources import H100

RANKS = (4, 8, 16, 32, 64)
TOKENS = (512, 2048, 8192, 32768, 131072)  # of a rank
HEADS = 32
BLOCKS = 64  # of a state that is cut
SOFTMAX, LINEAR, HYBRID = KINDS = ("softmax", "linear", "hybrid")
LAYOUTS = {stacks.CONTIGUOUS: "all contiguous", stacks.ZIGZAG: "all zigzag", stacks.MOVED: "softmax zigzag, moved between"}
TITLES = {SOFTMAX: "softmax attention", LINEAR: "linear attention",
          HYBRID: f"a stack of one softmax layer and {stacks.LINEAR_LAYERS} linear ones"}


def section(sources):
    maps = all_maps(sources)
    return Section("Which method wins where", [
        Text(f"One layer, forward and backward, {HEADS} heads of 128 in bf16, on `topologies/{H100}.json`: every method "
             "that is registered and runs there, by ranks and tokens of a rank. A state that is cut has "
             f"{BLOCKS} blocks. A difference below {100 * fastest.TYPICAL_ERROR:.0f} %, the typical error of predictions "
             "of machines that were measured (docs/results.md), is none. For a machine of yours: `./run advise`."),
        *(Figure(f"fastest_{kind}", f"The fastest method of {TITLES[kind]}", f"simulated: {H100}", "methods", found,
                 "Colour: the fastest method, of a stack that of its softmax layer; ×: how many times as long the next one "
                 "takes; =: how many others cannot be told from it.") for kind, found in maps.items()),
        *(table(f"fastest_{kind}", TITLES[kind], found) for kind, found in maps.items()),
        Text("Causal softmax is balanced with zigzag tokens, and a linear layer of such tokens is a chain of twice as many "
             "pieces, each half as long. So all layers of a stack have contiguous tokens, or all have zigzag ones, or hidden states of "
             f"{HEADS} * 128 channels move before and after each softmax layer, in both passes (`{stacks.MOVE}`, waited for "
             "at once). The stack of each layout is the fastest of its own. Methods of another layout, striped or a grid whose "
             "groups are zigzag (`usp_zigzag`), are in no stack."),
        layouts_table(all_stacks(sources))])


def all_maps(sources):
    """{kind: {(ranks, tokens of a rank): fastest.Fastest}}"""
    times = {kind: {place: {one["name"]: one["median_seconds"] for one in found}
                    for place, found in records_of(sources, kind).items()} for kind in (SOFTMAX, LINEAR)}
    times[HYBRID] = {place: times_of(found) for place, found in all_stacks(sources).items()}
    return {kind: {place: fastest.among(found) for place, found in sorted(places.items()) if found}
            for kind, places in times.items()}


def all_stacks(sources):
    """{(ranks, tokens of a rank): [stacks.Stack]}"""
    softmax, linear = (records_of(sources, kind) for kind in (SOFTMAX, LINEAR))
    channels = stacks.heads_of_move(HEADS, 128, "bf16")
    moves = {(one["ranks"], one["tokens"]): one for one in sources.on(H100, name=stacks.MOVE, heads=channels, d_k=1)
             if results.why_no_time(one) is None}
    return {place: list(stacks.all_of(found, linear[place], moves.get(place))) for place, found in softmax.items()
            if place in linear}


def times_of(found):
    """{name: seconds} of some Stacks."""
    return {one.name: stacks.total(one, "median_seconds") for one in found}


def records_of(sources, kind):
    """{(ranks, tokens of a rank): [record]} of the methods that compete."""
    places = collections.defaultdict(list)
    for record in sources.on(H100, bench="operator", heads=HEADS, dtype="bf16", attention=kind, mode="overlapped",
                             **{"pass": "both"}):
        place = record["ranks"], record["tokens"]
        if place[0] in RANKS and place[1] in TOKENS and stands(record):
            places[place].append(record)
    return places


def stands(record):
    return (results.why_no_time(record) is None and record.get("blocks_asked") in (1, BLOCKS)
            and results.kv_heads(record) == HEADS and fastest.exchanges(record))


def table(name, title, found, topology=H100):
    """The fastest method of each place and its time; `title` names the layers."""
    sizes = sorted({tokens for _, tokens in found})
    rows = []
    for ranks in sorted({ranks for ranks, _ in found}):
        places = [found.get((ranks, tokens)) for tokens in sizes]
        rows.append(Row(f"{ranks} ranks", "simulated, fastest", [name_cell(one, topology) for one in places]))
        rows.append(Row("", "time, ms", [time_cell(one, topology) for one in places]))
    return Table(name, f"The fastest method of {title} and its time, simulated",
                 [f"{tokens:,} tokens" for tokens in sizes], rows, ["Tokens are those of a rank."], True)


def layouts_table(found):
    """The fastest stack of each layout, in ms, by ranks and tokens."""
    sizes = sorted({tokens for _, tokens in found})
    rows = []
    for ranks in sorted({ranks for ranks, _ in found}):
        for number, layout in enumerate(stacks.LAYOUTS):
            alike = [[one for one in found.get((ranks, tokens), []) if one.layout == layout] for tokens in sizes]
            rows.append(Row(f"{ranks} ranks" if number == 0 else "", LAYOUTS[layout],
                            [layout_cell(fastest.among(times_of(some))) for some in alike]))
    return Table("layouts_of_stacks", f"What the layout of tokens costs {TITLES[HYBRID]}, simulated, ms",
                 [f"{tokens:,} tokens" for tokens in sizes], rows, ["Tokens are those of a rank."], True)


def layout_cell(one):
    cell = time_cell(one)
    return cell and cell._replace(note=one.name)


def name_cell(one, topology):
    return one and cells.Cell(f"{one.name} {margin_text(one)}", one.name, "method", cells.SIMULATED,
                              f"topology {topology}", note=note(one))


def margin_text(one):
    """Returns `2.50×`, `= 3` if three others cannot be told from it, or nothing if it is alone."""
    if one.runner_up is None:
        return ""
    return f"= {len(one.tied)}" if one.tied else f"{one.margin:.2f}×"


def note(one):
    if one.runner_up is None:
        return "nothing else runs"
    alike = f"; cannot be told from it: {', '.join(one.tied)}" if one.tied else ""
    return f"{one.runner_up} takes {one.margin:.3f} times as long{alike}"


def time_cell(one, topology=H100):
    value = one and one.seconds * 1e3
    return one and cells.Cell(cells.digits(value), f"{value:.6g}", "ms", cells.SIMULATED, f"topology {topology}")
