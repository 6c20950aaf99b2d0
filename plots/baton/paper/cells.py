# SPDX-License-Identifier: Apache-2.0
"""A number on the page of the papers and where it comes from.

A cell is published, simulated, measured, counted from schedules, or derived from such cells by arithmetic that the page
shows. No number mixes kinds except a ratio, which is derived and names both.
"""

import collections

from baton import results

PUBLISHED, SIMULATED, MEASURED, COUNTED, DERIVED = KINDS = (
    "published", "simulated", "measured", "counted", "derived")

# `text` is shown, `value` in `unit` goes into the CSV. `origin` is the source, the topology or the machine, `run` the
# launch of a measurement. `off` marks a cell that differs from its counterpart by more than FAR.
Cell = collections.namedtuple("Cell", "text value unit kind origin commit time note off run",
                              defaults=("", "", "", False, ""))

BY_EXECUTOR = ", executor "  # ends the place in the origin of a measured cell
FAR = 0.25  # simulated and published cells that differ by more than this are marked

# A row of a table: its label, the kind of its cells in words, and the cells. None is a blank.
Row = collections.namedtuple("Row", "label kind cells")


def published(row):
    """Returns the cell of a row of results/paper/*.csv, as printed."""
    return Cell(row["value"], row["value"], row["unit"], PUBLISHED, row["source"])


def timed(record, machine=""):
    """Returns a record's median in ms, which for a simulation is its one time. None if it has none."""
    if record is None or results.why_no_time(record):
        return None
    value = record["median_seconds"] * 1e3
    kind = SIMULATED if record["executor"] == results.SIMULATOR else MEASURED
    return Cell(digits(value), f"{value:.6g}", "ms", kind, origin(record, machine), record["commit"],
                record["time"], note(record), run=launch(record))


def made_of(record, value_of, unit, text=None, **more):
    """Returns what `value_of` makes of a record that has a time, shown as `text` says, else in three digits. None without one."""
    cell = timed(record)
    if cell is None:
        return None
    value = value_of(record)
    return cell._replace(text=(text or digits)(value), value=f"{value:.6g}", unit=unit, **more)


def points(places, row):
    """Returns {place: value} of the cells that are there."""
    return {place: float(cell.value) for place, cell in zip(places, row) if cell}


def plain(row):
    """Returns the cells without marks, where they are far from one another by nature."""
    return [cell and cell._replace(off=False) for cell in row]


def microseconds(record, machine):
    """Returns a measured record's median in us with its interval. None if it has none."""
    if record is None or results.why_no_time(record):
        return None
    value, low, high = (seconds * 1e6 for seconds in (record["median_seconds"], *record["ci95_seconds"]))
    return Cell(f"{digits(value)} [{digits(low)}, {digits(high)}]", f"{value:.6g}", "us", MEASURED,
                origin(record, machine), record["commit"], record["time"], note(record), run=launch(record))


def launch(record):
    """Returns the launch of a measurement. Equal simulations give equal times, whichever launch made them."""
    return "" if record["executor"] == results.SIMULATOR else record["run"]


def peer(row, machine):
    """Returns the time of another project's kernel in ms, from a line of peers.jsonl."""
    if row is None:
        return None
    value = row["median_seconds"] * 1e3
    versions = ", ".join(f"{key} {row[key]}" for key in ("torch", "triton") if key in row)
    return Cell(digits(value), f"{value:.6g}", "ms", MEASURED,
                f"{machine}, {row['peer']} {row['version']} on {row['gpu']}", time=row["time"],
                note=f"{row['kernel']}, {row['dtype']}; {versions}")


def counted(value, text, unit, record):
    """Returns a number that was counted from the schedules of a record's case."""
    return Cell(text, f"{value:g}", unit, COUNTED, f"schedules of {results.method(record)}", record["commit"],
                record["time"], note(record))


def origin(record, machine):
    if record["executor"] == results.SIMULATOR:
        return f"topology {record['topology']}"
    crowded = results.crowded(record)
    return f"{machine}{f' ({crowded})' if crowded else ''}{BY_EXECUTOR}{record['executor']}"


def note(record):
    """Returns the blocks, the interval and the extrapolation of a cell, for the CSV."""
    parts = [f"K = {record['blocks']}"] if record["blocks"] > 1 else []
    if record["executor"] != results.SIMULATOR:
        low, high = (digits(seconds * 1e3) for seconds in record["ci95_seconds"])
        parts.append(f"median of {record['rounds']} rounds, 95 % interval {low} to {high} ms, mean "
                     f"{digits(record['mean_seconds'] * 1e3)} ms")
    if record.get("extrapolated"):
        parts.append(f"extrapolated: {record['extrapolated']}")
    return "; ".join(parts)


def derived(value, text, unit, of, note_text=""):
    return Cell(text, f"{value:.6g}", unit, DERIVED, of, note=note_text)


def ratio(cell, base):
    """Returns the ratio to `base`, None if one of them is missing."""
    if cell is None or base is None:
        return None
    value = float(cell.value) / float(base.value)
    return derived(value, f"{digits(value)}×", "", f"{cell.kind} / {base.kind}")._replace(off=is_far(value))


def is_far(value):
    """Says whether a ratio differs from 1 by more than a quarter."""
    return abs(value - 1) > FAR


def difference(cell, base):
    """Returns the difference from `base` in percent."""
    if cell is None or base is None:
        return None
    value = 100 * (float(cell.value) / float(base.value) - 1)
    return derived(value, signed(value), "%", f"{cell.kind} / {base.kind} - 1")._replace(
        off=is_far(1 + value / 100))


def signed(percent):
    return f"{percent:+.1f} %".replace("-", "−")


def digits(value):
    """Returns three significant digits, without an exponent."""
    exponent = int(f"{abs(value):.2e}".partition("e")[2]) if value else 2
    return f"{value:,.{max(2 - exponent, 0)}f}"
