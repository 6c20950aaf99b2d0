# SPDX-License-Identifier: Apache-2.0
"""Each exchange to 16,384 ranks, and the reason where there is no time."""

from baton import results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import MANY_H100, by, chosen_by_model

RANKS = tuple(8 * 2**power for power in range(12))
NAMES = ("hierarchical_scan", "two_shot", "recursive_doubling", "hierarchical_scan_chain", "all_scan", "ring_scan",
         "all_gather_scan", "all_gather_scan_direct", "ring_all_gather", "ring_exchange")
ALIKE = ("all_gather_scan_direct", "ring_all_gather")  # their lines would lie on that of `all_gather_scan`


def section(sources):
    found = {name: by("ranks", sources.on(MANY_H100, name=name, **SHAPE)) for name in NAMES}
    return Section("Scaling to 16,384 ranks", [
        Text("The same exchanges, 2 MiB of state a rank, on `topologies/dgx-h100-2048x8.json`: 2048 nodes of "
             "a machine that nobody here has. A chain's time grows with P whatever its blocks, for every hop "
             "has a latency; a gather's grows with P times the state. Only what doubles or owns slices stays "
             "flat, and from 16 ranks on the scan that knows where nodes end is first."),
        table(found),
        Figure("scaling", "Time against ranks, to 16,384", f"2 MiB of state a rank; simulated: {MANY_H100}", "scaling",
               drawing(found), "Both scales are logarithmic. A line ends where simulating it took too long; "
               "the other gathers lie on `all_gather_scan`.")])


def table(found):
    rows = [Row(f"`{name}`", "simulated", [cells.timed(found[name].get(ranks)) for ranks in RANKS])
            for name in NAMES]
    return Table("scaling", "Time of one exchange, simulated, ms", [f"{ranks:,}" for ranks in RANKS], rows,
                 [*skipped_notes(found), *blocks_notes(found)])


def skipped_notes(found):
    refused = [f"`{name}` on {ranks:,} ranks ({reason})" for name, records in found.items()
               for ranks, record in records.items() if (reason := results.why_no_time(record))]
    if refused:
        yield f"Skipped: {', '.join(refused)}."
    left_out = [f"`{name}` on {missing[0]:,} to {missing[-1]:,}" for name, records in found.items()
                if records and (missing := [ranks for ranks in RANKS if ranks not in records])]
    if left_out:
        yield ("Left out, for the messages grow with the square of the ranks and each would take minutes: "
               f"{', '.join(left_out)}.")


def blocks_notes(found):
    for name in NAMES:
        blocks = {record["blocks"]: ranks for ranks, record in found[name].items() if record["blocks"] > 1}
        fixed = min((ranks for ranks, record in found[name].items() if not chosen_by_model(record)), default=0)
        if blocks and fixed:
            yield (f"`{name}` in the model's blocks below {fixed:,} ranks; from there on in "
                   f"{found[name][fixed]['blocks']}, near its best and quicker to simulate.")


def drawing(found):
    """[(name, {ranks: ms})]"""
    lines = [(name, {ranks: record["median_seconds"] * 1e3 for ranks, record in records.items()
                     if results.why_no_time(record) is None}) for name, records in found.items() if name not in ALIKE]
    return [line for line in lines if line[1]]
