# SPDX-License-Identifier: Apache-2.0
"""Table 1 of ZeCO, counted: what every collective sends, from the schedules themselves."""

from baton import results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import H100, chosen_by_model, having

RANKS = (8, 64)
QUANTITIES = ("MiB sent", "in states", "messages", "hops")
MIB = 2**20


def section(sources):
    return Section("Volumes: ZeCO's table 1, counted", [
        Text("Bytes, messages and hops are counted from the recorded schedules as they run, and the bytes "
             "and hops are compared with what each algorithm's author claims; nothing here is typed. The "
             "paper's formulas are one state a GPU for LASP-1 and ZeCO, and P states for LASP-2."),
        collectives_table(sources)])


def columns():
    return [f"{quantity}, P={ranks}" for ranks in RANKS for quantity in QUANTITIES]


def collectives_table(sources):
    records = [record for record in sources.on(H100, bench="collective", **SHAPE) if is_counted(record)]
    rows = [row(name, "counted, forward", having(records, name=name)) for name in names(records)]
    return Table("volumes_collectives", "Collectives, a state of 2 MiB", columns(), rows, [
        *blocks_notes(records), "MiB sent: by the rank that sends most; in states: the same over the state's "
        "size. A map is a state and its decays. Messages: of all ranks, over their number. Hops: the most "
        "messages on any chain of steps that wait for one another.",
        "`ring_exchange` moves keys and values of 8K tokens in fp32."], True)


def is_counted(record):
    """Says whether a record has a time and the model's blocks. Other block counts belong to the sweeps."""
    return (results.why_no_time(record) is None and record["ranks"] in RANKS
            and (chosen_by_model(record) or record["blocks"] == 1))


def names(records):
    """Returns each name once, by kind and name."""
    return list(dict.fromkeys(record["name"] for record in sorted(records, key=lambda one: (
        one.get("kind", ""), one["name"]))))


def row(name, kind, records):
    records = sorted(records, key=chosen_by_model, reverse=True)
    found = {ranks: next((one for one in records if one["ranks"] == ranks), None) for ranks in RANKS}
    return Row(f"`{name}`", kind, [cell for ranks in RANKS for cell in quantities(found[ranks])])


def quantities(record):
    if record is None:
        return [None] * len(QUANTITIES)
    sent, messages = record["sent_bytes"], record["messages"] / record["ranks"]
    return [cells.counted(sent / MIB, f"{sent / MIB:.2f}", "MiB", record),
            cells.counted(sent / record["state_bytes"], f"{sent / record['state_bytes']:.2f}", "states", record),
            cells.counted(messages, f"{messages:.1f}", "messages a rank", record),
            cells.counted(record["hops"], str(record["hops"]), "hops", record)]


def blocks_notes(records):
    chosen = {(record["name"], record["ranks"], record["blocks"]) for record in records
            if chosen_by_model(record) and record["blocks"] > 1}
    if chosen:
        yield "Blocks that the model chose: " + ", ".join(f"`{name}` {blocks} on {ranks} ranks"
                                                          for name, ranks, blocks in sorted(chosen)) + "."
