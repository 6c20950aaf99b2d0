# SPDX-License-Identifier: Apache-2.0
"""Which exchange wins where: ranks against state size, and All-Scan's blocks."""

import collections

import paper_cells
import results
from paper_cells import Row, digits
from paper_page import Figure, Section, Table, Text
from paper_records import H100
from paper_table2 import SHAPE

# What competes, by family: the map tells chains, doubling, slice owners and the two levels apart.
FAMILIES = {"all_scan": "chain in blocks", "ring_scan": "chain of states", "recursive_doubling": "doubling",
            "two_shot": "two-shot", "hierarchical_scan": "hierarchical", "hierarchical_scan_chain": "hierarchical",
            "all_gather_scan": "gather"}
SWEPT_RANKS = (8, 32, 256)

Best = collections.namedtuple("Best", "family seconds margin runner_up")


def section(sources):
    winners = winners_of(sources)
    return Section("Which exchange wins where", [
        Text(f"An exclusive scan of every rank's state on `topologies/{H100}.json`, by ranks and size of the state. The margin "
             "is the time of the next family over the winner's; below 1.02 it is a tie. All-Scan has the blocks that the "
             "model chooses."),
        Figure("winners", "The fastest exclusive scan.", "winners", winners,
               "Colour: the winner; number: how many times longer the next family takes."),
        table(winners),
        *blocks_blocks(sources)])


# --- The map --------------------------------------------------------------------------------------------


def winners_of(sources):
    """{(ranks, state bytes): Best}"""
    times = collections.defaultdict(dict)
    for record in sources.on(H100, kind="exclusive_scan", direction="forward"):
        if record["name"] in FAMILIES and stands(record):
            place, family = (record["ranks"], record["state_bytes"]), FAMILIES[record["name"]]
            times[place][family] = min(record["median_seconds"], times[place].get(family, record["median_seconds"]))
    return {place: best(found) for place, found in sorted(times.items()) if len(found) > 1}


def stands(record):
    """A time, with the model's blocks where there are blocks to choose."""
    return results.why_no_time(record) is None and (record["blocks_asked"] == "auto" or record["blocks"] == 1)


def best(found):
    (family, seconds), (runner_up, second) = sorted(found.items(), key=lambda item: item[1])[:2]
    return Best(family, seconds, second / seconds, runner_up)


def table(winners):
    sizes = sorted({size for _, size in winners})
    rows = []
    for ranks in sorted({ranks for ranks, _ in winners}):
        found = [winners.get((ranks, size)) for size in sizes]
        rows.append(Row(f"{ranks} ranks", "simulated, winner", [winner_cell(one) for one in found]))
        rows.append(Row("", "time, ms", [time_cell(one) for one in found]))
    return Table("winners", "The fastest family and its time", [results.binary_size(size) for size in sizes], rows,
                 ["A state is that of one rank. hierarchical: the better of its two forms."])


def winner_cell(one):
    return one and paper_cells.Cell(f"{one.family} {one.margin:.2f}×", one.family, "family", paper_cells.SIMULATED,
                                    f"topology {H100}", note=f"{one.runner_up} takes {one.margin:.3f} times as long")


def time_cell(one):
    value = one and one.seconds * 1e3
    return one and paper_cells.Cell(digits(value), f"{value:.6g}", "ms", paper_cells.SIMULATED, f"topology {H100}")


# --- All-Scan's blocks ----------------------------------------------------------------------------------


def blocks_blocks(sources):
    found = {ranks: sources.on(H100, name="all_scan", ranks=ranks, **SHAPE) for ranks in SWEPT_RANKS}
    swept = {ranks: {one["blocks"]: one["median_seconds"] * 1e3 for one in records if one["blocks_asked"] != "auto"}
             for ranks, records in found.items()}
    chosen = {ranks: next(((one["blocks"], one["median_seconds"] * 1e3) for one in records
                           if one["blocks_asked"] == "auto"), None) for ranks, records in found.items()}
    counts = sorted({blocks for times in swept.values() for blocks in times})
    if not counts:
        return
    yield Table("blocks", "All-Scan by blocks, ms", [f"K={blocks}" for blocks in counts] + ["chosen"],
                [block_row(sources, ranks, counts, chosen[ranks]) for ranks in SWEPT_RANKS],
                ["chosen: by the model, with the K that it took; what it costs against the best of the sweep is in the "
                 "figure."])
    yield Figure("blocks", "All-Scan's time against its blocks.", "blocks", (swept, chosen),
                 "2 MiB of state; the ring marks the K that `--blocks auto` takes.")


def block_row(sources, ranks, counts, chosen):
    records = {one["blocks"]: one for one in sources.on(H100, name="all_scan", ranks=ranks, **SHAPE)
               if one["blocks_asked"] != "auto"}
    cells = [paper_cells.timed(records.get(blocks)) for blocks in counts]
    auto = next((one for one in sources.on(H100, name="all_scan", ranks=ranks, blocks_asked="auto", **SHAPE)), None)
    last = paper_cells.timed(auto)
    return Row(f"{ranks} ranks", f"simulated, {H100}",
               [*cells, last and last._replace(text=f"{last.text} (K={chosen[0]})")])
