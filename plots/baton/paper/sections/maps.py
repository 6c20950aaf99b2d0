# SPDX-License-Identifier: Apache-2.0
"""Maps of which method is the fastest where: the places of ranks and sizes, and their tables."""

import collections

from baton import fastest, results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Figure, Table
from baton.paper.sources import H100

BLOCKS = 64  # of a state that is cut


def layers(sources, topology, ranks, tokens, **wanted):
    """{(ranks, tokens of a rank): [record]} of the simulated layers that compete, in both passes."""
    places = collections.defaultdict(list)
    for record in sources.on(topology, bench="operator", dtype="bf16", mode="overlapped", **{"pass": "both"}, **wanted):
        if (record["ranks"] in ranks and record["tokens"] in tokens and results.why_no_time(record) is None
                and record.get("blocks_asked") in (1, BLOCKS) and fastest.exchanges(record)):
            places[record["ranks"], record["tokens"]].append(record)
    return places


def figure(name, title, where, found, colour="the fastest method"):
    return Figure(name, f"The fastest method of {title}", where, "methods", found, f"Colour: {colour}; ×: how many times as long the "
                  "next one takes; =: how many others cannot be told from it.")


def methods_table(name, title, found, topology=H100):
    """The fastest method of each of {(ranks, tokens): fastest.Fastest}, and its time; `title` names the layers."""
    return table(name, f"The fastest method of {title} and its time, simulated", found, "{:,} tokens".format,
                 {"simulated, fastest": lambda one: name_cell(one, margin_text(one), note(one), topology),
                  "time, ms": lambda one: time_cell(one, topology)}, ["Tokens are those of a rank."])


def table(name, title, found, heading, kinds, notes):
    """A folded table with a row of each of {kind: function that makes a cell of a place} for each rank count."""
    ranks, sizes = (sorted({place[axis] for place in found}) for axis in (0, 1))
    rows = [Row("" if number else f"{count} ranks", kind, [make(found.get((count, size))) for size in sizes])
            for count in ranks for number, (kind, make) in enumerate(kinds.items())]
    return Table(name, title, list(map(heading, sizes)), rows, notes, True)


def name_cell(one, margin, note_text, topology, unit="method"):
    return one and cells.Cell(f"{one.name} {margin}", one.name, unit, cells.SIMULATED, f"topology {topology}", note=note_text)


def time_cell(one, topology=H100):
    value = one and one.seconds * 1e3
    return one and cells.Cell(cells.digits(value), f"{value:.6g}", "ms", cells.SIMULATED, f"topology {topology}")


def margin_text(one):
    """Returns `2.50×`, `= 3` if three others cannot be told from it, or nothing if it is alone."""
    if one is None or one.runner_up is None:
        return ""
    return f"= {len(one.tied)}" if one.tied else f"{one.margin:.2f}×"


def note(one):
    if one is None or one.runner_up is None:
        return "nothing else runs"
    alike = f"; cannot be told from it: {', '.join(one.tied)}" if one.tied else ""
    return f"{one.runner_up} takes {one.margin:.3f} times as long{alike}"
