# SPDX-License-Identifier: Apache-2.0
"""Which method is the fastest where: ranks against tokens of a rank, softmax and linear attention apart."""

from lib import fastest, results
from paper import cells
from paper.cells import Row
from paper.page import Figure, Section, Table, Text
from paper.records import H100

RANKS = (4, 8, 16, 32, 64)
TOKENS = (512, 2048, 8192, 32768, 131072)  # of a rank
HEADS = 32
BLOCKS = 64  # of a state that is cut
KINDS = ("softmax", "linear")


def section(sources):
    maps = {kind: fastest_of(sources, kind) for kind in KINDS}
    return Section("Which method wins where", [
        Text(f"One layer, forward and backward, {HEADS} heads of 128 in bf16, on `topologies/{H100}.json`: every method "
             "that is registered and runs there, by ranks and tokens of a rank. A state that is cut has "
             f"{BLOCKS} blocks. A difference below {100 * fastest.TYPICAL_ERROR:.0f} %, the typical error of predictions "
             "of machines that were measured (docs/results.md), is none. For a machine of yours: `./run advise`."),
        *(Figure(f"fastest_{kind}", f"The fastest method of {kind} attention", f"simulated: {H100}", "methods", found,
                 "Colour: the fastest method; ×: how many times as long the next one takes; =: how many others cannot be "
                 "told from it.") for kind, found in maps.items()),
        *(table(kind, found) for kind, found in maps.items())])


def fastest_of(sources, kind):
    """{(ranks, tokens of a rank): lib.fastest.Fastest}"""
    times = {}
    for record in sources.on(H100, bench="operator", heads=HEADS, dtype="bf16", attention=kind, mode="overlapped",
                             **{"pass": "both"}):
        place = record["ranks"], record["tokens"]
        if place[0] in RANKS and place[1] in TOKENS and stands(record):
            times.setdefault(place, {})[record["name"]] = record["median_seconds"]
    return {place: fastest.of(found) for place, found in sorted(times.items())}


def stands(record):
    return (results.why_no_time(record) is None and record.get("blocks_asked") in (1, BLOCKS)
            and results.kv_heads(record) == HEADS and fastest.exchanges(record))


def table(kind, found):
    sizes = sorted({tokens for _, tokens in found})
    rows = []
    for ranks in sorted({ranks for ranks, _ in found}):
        places = [found.get((ranks, tokens)) for tokens in sizes]
        rows.append(Row(f"{ranks} ranks", "simulated, fastest", [name_cell(one) for one in places]))
        rows.append(Row("", "time, ms", [time_cell(one) for one in places]))
    return Table(f"fastest_{kind}", f"The fastest method of {kind} attention and its time, simulated",
                 [f"{tokens:,} tokens" for tokens in sizes], rows, ["Tokens are those of a rank."], True)


def name_cell(one):
    return one and cells.Cell(f"{one.name} {margin_text(one)}", one.name, "method", cells.SIMULATED, f"topology {H100}",
                              note=note(one))


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


def time_cell(one):
    value = one and one.seconds * 1e3
    return one and cells.Cell(cells.digits(value), f"{value:.6g}", "ms", cells.SIMULATED, f"topology {H100}")
