# SPDX-License-Identifier: Apache-2.0
"""Exchanges between GPUs as measured: every method by size, and nccl-tests beside it."""

from baton import exchanges, words
from baton.paper import cells, nccl_tests
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text

RANKS, TIMING = 4, "isolated"  # of the figure and the open table
LOWERED_CLOCKS_ARE = ~1  # NVML's mask of reasons without "idle"
LEAD = ("The exclusive scan of the states as the suite measures it on GPUs. `peer` is one kernel a round that stores "
        "into the other GPUs' memory; `peer_bf16` the same with bf16 on the wire; `nccl` sends and receives as the host "
        "launches them. A native is a kernel written for this exchange, or a library's call. All rounds start from one "
        "line of the GPUs' own, and every cell was verified against a serial fold in the launch that timed it.")


def section(sources):
    found = {machine: of_machine for machine, records in sources.measured.items()
             if (of_machine := exchanges.sweeps(filter(exchanges.on_gpus, records)))}
    most_ranks_first = sorted(found.items(), key=lambda one: -max(ranks for ranks, _ in one[1]))
    return Section("Exchanges between GPUs", [
        Text(LEAD), *(block for machine, sweeps in most_ranks_first
                      for block in machine_blocks(machine, sweeps, sources.measured[machine])),
        *(block for machine, records in sources.measured.items()
          for block in nccl_tests.blocks(machine, records, sources.texts.get(machine, {})))])


def machine_blocks(machine, sweeps, records):
    yield Text(verified(machine, list(filter(exchanges.on_gpus, records))))
    asked = sweeps.get((RANKS, TIMING))
    if asked:
        yield Figure(f"exchange_{machine}", "Time against the size of the state",
                     f"{RANKS} GPUs, {TIMING} rounds; measured: {machine}", "sizes", asked,
                     "Medians with their 95 % interval; both scales are logarithmic. The dotted line is what an empty "
                     "round, three flags and the state on one link take.")
    for (ranks, timing), sweep in sorted(sweeps.items(), key=order):
        yield table(sweep, (ranks, timing), machine, f"exchange_{machine}_{ranks}_{timing}")


def verified(machine, records):
    wrong = sum(record.get("wrong") or 0 for record in records)
    skipped = sum("skipped" in record for record in records)
    return (f"**{machine}**: {len(records) - skipped} cases were verified and timed, exchanges and layers, with {wrong} "
            f"wrong elements altogether; {skipped} are skipped, with the reason in their records.")


def order(one):
    """Sorts by falling rank count, and puts isolated before other cadences."""
    ranks, timing = one[0]
    return -ranks, timing != TIMING, timing


# --- Tables ---------------------------------------------------------------------------------------------


def table(sweep, place, machine, name):
    """Returns the table of one sweep. `place` is (ranks, timing)."""
    ranks, timing = place
    rows = [row for one in sweep.methods() for row in method_rows(sweep, one, machine, timing)]
    return Table(name, f"{ranks} GPUs, {timing} rounds, µs ({machine})",
                 [words.binary_size(size) for size in sweep.sizes()], rows, list(notes(sweep)),
                 place != (RANKS, TIMING))


def method_rows(sweep, one, machine, timing):
    records = [sweep.at(one, size) for size in sweep.sizes()]
    newest = max(filter(None, records), key=lambda record: record["time"])
    native = " native" if newest["implementation"] != "schedule" else ""
    yield Row(f"`{one.name}`", f"measured, {one.executor}{native}",
              [cells.microseconds(record, machine) for record in records])
    if one != exchanges.BASE:
        yield Row("", f"× `{exchanges.BASE.name}`", [over(sweep, record, sweep.at(exchanges.BASE, size))
                                           for record, size in zip(records, sweep.sizes())])
    if timing == exchanges.BOUND_TIMING and any(record and record["bound_seconds"] for record in records):
        yield Row("", "bound, and its share", [bound(record) for record in records])
    if any(record and record.get("relative_error") for record in records):
        yield Row("", "error of the state", [error(record, machine) for record in records])


def over(sweep, record, base):
    if record is None or base is None:
        return None
    value = record["median_seconds"] / base["median_seconds"]
    return cells.derived(value, f"{value:.2f}{sweep.elsewhere(record, base)}", "",
                               "measured / measured median")


def bound(record):
    if record is None or not record["bound_seconds"]:
        return None
    seconds, share = record["bound_seconds"], record["bound_seconds"] / record["median_seconds"]
    return cells.derived(seconds * 1e6, f"{cells.digits(seconds * 1e6)}, {100 * share:.0f} %", "us",
                               "empty round + hops alpha + bytes / beta, measured in the same launch",
                               f"{100 * share:.1f} % of the median")


def error(record, machine):
    if record is None:
        return None
    value = record["relative_error"]
    return cells.Cell(f"{value:.1e}", f"{value:.3g}", "", cells.MEASURED, cells.origin(record, machine),
                      record["commit"], record["time"], "compared before the timing", run=record["run"])


def notes(sweep):
    records = sweep.records()
    newest = max(records, key=lambda record: record["time"])
    wire = sweep.at(exchanges.BASE, sweep.sizes()[-1]) or newest
    gpu = newest["device"]
    yield (f"Medians of {newest['rounds']} rounds after {newest['warmup']}, each the slowest rank's, with their 95 % "
           f"interval; {gpu['gpu']}, driver {gpu.get('driver', 'unknown')}.")
    yield (f"In the same launch: empty round {wire.get('floor_seconds', 0) * 1e6:.2f} µs, alpha "
           f"{wire['alpha_seconds'] * 1e6:.2f} µs, beta {wire['beta_bytes_per_second'] * 1e-9:.1f} GB/s. "
           "A library's own traffic is not counted, so it has no bound.")
    others = {record["run"] for record in records} - {sweep.run}
    if others:
        yield f"{exchanges.ELSEWHERE} A ratio with a time of another launch than {sweep.run}."
    lowered = sum(map(lowered_clocks, records))
    if lowered:
        yield f"{lowered} of {len(records)} rows ran or ended with lowered clocks (`throttle_reasons` in the records)."


def lowered_clocks(record):
    states = (record.get("device_before", {}), record.get("device_after", {}))
    return any(int(reasons) & LOWERED_CLOCKS_ARE for state in states for reasons in state.get("throttle_reasons", []))
