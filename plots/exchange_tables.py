# SPDX-License-Identifier: Apache-2.0
"""Tables of exchanges on GPUs: methods by size of the state, beside All-Scan and beside their bounds."""

import exchanges
import paper_cells
import results
from paper_cells import Row
from paper_page import Table

BASE = exchanges.FUSED
BOUND_CADENCE = "isolated"  # the bound has an empty round in it, which rounds back to back share
LOWERED_CLOCKS_ARE = ~1  # of NVML's mask of reasons: all but "idle"


def table(contest, place, machine, name):
    """The table of one contest; `place` is (ranks, cadence)."""
    ranks, cadence = place
    rows = [row for one in contest.methods() for row in method_rows(contest, one, machine, cadence)]
    return Table(name, f"{ranks} GPUs, {cadence} rounds, µs ({machine})",
                 [results.binary_size(size) for size in contest.sizes()], rows, list(notes(contest)))


def method_rows(contest, one, machine, cadence):
    records = [contest.at(one, size) for size in contest.sizes()]
    newest = max(filter(None, records), key=lambda record: record["time"])
    native = " native" if newest["implementation"] != "schedule" else ""
    yield Row(f"`{one.name}`", f"measured, {one.executor}{native}",
              [timed(contest, record, machine) for record in records])
    if one != BASE:
        yield Row("", f"× `{BASE.name}`", [over(contest, record, contest.at(BASE, size))
                                           for record, size in zip(records, contest.sizes())])
    if cadence == BOUND_CADENCE and any(record and record["bound_seconds"] for record in records):
        yield Row("", "bound, and its share", [bound(record) for record in records])
    if any(record and record.get("relative_error") for record in records):
        yield Row("", "error of the state", [error(record, machine) for record in records])


def timed(contest, record, machine):
    cell = paper_cells.microseconds(record, machine)
    return cell and cell._replace(text=cell.text + contest.elsewhere(record))


def over(contest, record, base):
    if record is None or base is None:
        return None
    value = record["median_seconds"] / base["median_seconds"]
    return paper_cells.derived(value, f"{value:.2f}{contest.elsewhere(record, base)}", "",
                               "measured / measured median")


def bound(record):
    if record is None or not record["bound_seconds"]:
        return None
    seconds, share = record["bound_seconds"], record["bound_seconds"] / record["median_seconds"]
    return paper_cells.derived(seconds * 1e6, f"{paper_cells.digits(seconds * 1e6)}, {100 * share:.0f} %", "us",
                               "empty round + hops alpha + bytes / beta, measured in the same launch",
                               f"{100 * share:.1f} % of the median")


def error(record, machine):
    if record is None:
        return None
    value = record["relative_error"]
    return paper_cells.Cell(f"{value:.1e}", f"{value:.3g}", "", paper_cells.MEASURED, f"{machine}, before the timing",
                            record["commit"], record["time"])


def notes(contest):
    records = contest.records()
    newest = max(records, key=lambda record: record["time"])
    wire = contest.at(BASE, contest.sizes()[-1]) or newest
    gpu = newest["device"]
    yield (f"Medians of {newest['rounds']} rounds after {newest['warmup']}, each the slowest rank's, with their 95 % "
           f"interval; {gpu['gpu']}, driver {gpu['driver']}; commit {newest['commit']}, {newest['time'][:10]}.")
    yield (f"In the same launch: empty round {wire['floor_seconds'] * 1e6:.2f} µs, alpha "
           f"{wire['alpha_seconds'] * 1e6:.2f} µs, beta {wire['beta_bytes_per_second'] * 1e-9:.1f} GB/s. "
           "A library's own traffic is not counted, so it has no bound.")
    others = {record["run"] for record in records} - {contest.run}
    if others:
        yield f"{exchanges.ELSEWHERE} not of the launch {contest.run}: of {', '.join(sorted(others))}."
    lowered = sum(map(lowered_clocks, records))
    if lowered:
        yield f"{lowered} of {len(records)} rows ran or ended with lowered clocks (`throttle_reasons` in the records)."


def lowered_clocks(record):
    states = (record["device_before"], record["device_after"])
    return any(int(reasons) & LOWERED_CLOCKS_ARE for state in states for reasons in state["throttle_reasons"])
