# SPDX-License-Identifier: Apache-2.0
"""Measured against predicted, for every machine whose rows carry a prediction."""

import collections
import math

from baton import results, words
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text

QUANTITIES = ("rows", "predicted / measured", "typical error, %", "worst error, %")
SMALL, LARGE = 64 * 2**10, 16 * 2**20  # a prediction is meant to hold between these sizes of a state

Errors = collections.namedtuple("Errors", "mean typical worst")


def section(sources):
    rows = {machine: found for machine, records in sources.measured.items() if (found := predicted(records))}
    return Section("Measured against predicted", [
        Text("Where a run had a topology beside it (`--topology`, or `--calibrate` which measures one "
             "first), each of its rows has a prediction: the same schedule in the simulator. The ratio is a "
             "geometric mean of predicted over measured medians, the typical error that of max(predicted / "
             "measured, measured / predicted), less 1."),
        *(block for machine, found in rows.items() for block in machine_blocks(machine, found))])


def predicted(records):
    """Returns the records that were measured and predicted. Natives have no steps to simulate."""
    return [record for record in records if record.get("predicted_seconds")
            and results.why_no_time(record) is None and record["ranks"] > 1 and not results.crowded(record)]


def machine_blocks(machine, records):
    within = [record for record in records if SMALL <= record["state_bytes"] <= LARGE]
    yield Table(f"predicted_{machine}", f"{machine}", list(QUANTITIES), [
        *grouped(records, "", results.method),
        *grouped(records, "ranks", lambda record: record["ranks"]),
        *grouped(records, "state", lambda record: record["state_bytes"], words.binary_size),
        *([error_row("all, 64 KiB to 16 MiB", within)] if within else []), error_row("all", records)],
        list(notes(records)), True)
    yield Figure(f"predicted_{machine}", "Predicted against measured", f"measured: {machine}", "predicted",
                 [(results.method(one), one["median_seconds"] * 1e3, one["predicted_seconds"] * 1e3)
                  for one in records], "One mark a row of the records; the band is a fifth to either side.")


def notes(records):
    topologies = sorted({record["topology"] for record in records if record.get("topology")})
    if topologies:
        yield f"Predicted on {', '.join(f'`{name}`' for name in topologies)}."
    far = sum(bool(record.get("extrapolated")) for record in records)
    if far:
        yield f"{far} of {len(records)} rows are extrapolated: beyond the ranks or sizes that the calibration measured."


def grouped(records, what, key, text=str):
    groups = collections.defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return [error_row(f"{what} {text(value)}".strip(), group) for value, group in sorted(groups.items())]


def errors(records):
    """Returns the geometric mean of predicted over measured, and the typical and the worst error as shares."""
    logs = [math.log(record["predicted_seconds"] / record["median_seconds"]) for record in records]
    return Errors(math.exp(sum(logs) / len(logs)), math.expm1(sum(map(abs, logs)) / len(logs)),
                  math.expm1(max(map(abs, logs))))


def error_row(label, records):
    one, of = errors(records), "predicted / measured medians"
    return Row(label, "derived", [
        cells.derived(len(records), str(len(records)), "rows", of), cells.derived(one.mean, f"{one.mean:.2f}", "", of),
        cells.derived(100 * one.typical, f"{100 * one.typical:.0f}", "%", of),
        cells.derived(100 * one.worst, f"{100 * one.worst:.0f}", "%", of)])
