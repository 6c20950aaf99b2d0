# SPDX-License-Identifier: Apache-2.0
"""Which exchange wins where: ranks against state size, and All-Scan's blocks."""

import collections

from baton import fastest, results, words
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.links import Links
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections import maps
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import H100, chosen_by_model

# The competing collectives and their families.
FAMILIES = {"all_scan": "chain", "ring_scan": "chain", "recursive_doubling": "doubling",
            "two_shot": "two-shot", "hierarchical_scan": "hierarchical", "hierarchical_scan_chain": "hierarchical",
            "all_gather_scan": "gather"}
SWEPT_RANKS = (8, 32, 256)


def section(sources):
    winners = winners_of(sources)
    return Section("Which exchange wins where", [
        Text(f"An exclusive scan of every rank's state on `topologies/{H100}.json`, by ranks and size of the "
             "state. The margin is the time of the next family over the winner's; = says how many families are within "
             f"{100 * fastest.TYPICAL_ERROR:.0f} % of it, the typical error of predictions. "
             "A chain is All-Scan, in the blocks that the model chooses. On one node the hierarchical scan "
             "is the two-shot."),
        Figure("winners", "The fastest exclusive scan", f"simulated: {H100}", "winners", winners,
               "Colour: the winner; number: how many times longer the next family takes."),
        table(winners),
        *blocks_blocks(sources)])


# --- The map --------------------------------------------------------------------------------------------


def winners_of(sources):
    """{(ranks, state bytes): fastest.Fastest}"""
    times = collections.defaultdict(dict)
    for record in sources.on(H100, kind="exclusive_scan", direction="forward"):
        family = family_of(record)
        if family and stands(record):
            place = record["ranks"], record["state_bytes"]
            times[place][family] = min(record["median_seconds"], times[place].get(family, record["median_seconds"]))
    return {place: fastest.among(found) for place, found in sorted(times.items()) if len(found) > 1}


def family_of(record):
    """Returns the family, or None if the record does not compete. Within a node the hierarchical scan is the two-shot."""
    one_node = record["ranks"] <= Links(H100).ranks_per_node
    family = FAMILIES.get(record["name"])
    return "two-shot" if family == "hierarchical" and one_node else family


def stands(record):
    """Says whether a record has a time, and the model's blocks if it has blocks to choose."""
    return results.why_no_time(record) is None and (chosen_by_model(record) or record["blocks"] == 1)


def table(winners):
    return maps.table("winners", "The fastest family and its time, simulated", winners, words.binary_size, {
        "simulated, winner": lambda one: one and maps.name_cell(one, maps.margin_text(one), maps.note(one), H100, "family"),
        "time, ms": maps.time_cell}, ["A state is that of one rank. hierarchical: the better of its two forms."])


# --- All-Scan's blocks ----------------------------------------------------------------------------------


def blocks_blocks(sources):
    swept, chosen = {}, {}
    for ranks in SWEPT_RANKS:
        records = [one for one in sources.on(H100, name="all_scan", ranks=ranks, **SHAPE)
                   if results.why_no_time(one) is None]
        swept[ranks] = {one["blocks"]: one for one in records if not chosen_by_model(one)}
        chosen[ranks] = next((one for one in records if chosen_by_model(one)), None)
    counts = sorted({blocks for records in swept.values() for blocks in records})
    if not counts:
        return
    yield Table("blocks", "All-Scan by blocks, simulated, ms", [*(f"K={blocks}" for blocks in counts), "chosen"],
                [block_row(ranks, [swept[ranks].get(blocks) for blocks in counts], chosen[ranks])
                 for ranks in SWEPT_RANKS], ["chosen: by the model, with the K that it took."], True)
    yield Figure("blocks", "All-Scan's time against its blocks", f"2 MiB of state a rank; simulated: {H100}", "blocks",
                 {ranks: (drawn(swept[ranks].values()), drawn(filter(None, [chosen[ranks]]))) for ranks in SWEPT_RANKS
                  if swept[ranks]}, "The ring marks the K that `--blocks auto` takes.")


def block_row(ranks, records, chosen):
    last = cells.timed(chosen)
    return Row(f"{ranks} ranks", "simulated",
               [*map(cells.timed, records), last and last._replace(text=f"{last.text} (K={chosen['blocks']})")])


def drawn(records):
    """{K: ms}"""
    return {one["blocks"]: one["median_seconds"] * 1e3 for one in sorted(records, key=lambda one: one["blocks"])}
