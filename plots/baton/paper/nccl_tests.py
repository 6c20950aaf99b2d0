# SPDX-License-Identifier: Apache-2.0
"""Our ncclAllGather beside NVIDIA's own nccl-tests: the same library, machine, sizes and timing."""

import re

from baton import checks, results, words
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Table, Text

OURS = "nccl_all_gather"
FILE = re.compile(r"nccl-tests-(\w+)")  # the group is the timing
WITHIN = 0.03


def tests(text):
    """Returns {bytes gathered: busbw out of place in bytes a second} of an output of all_gather_perf."""
    found = {}
    for line in text.splitlines():
        columns = line.split()
        if columns and columns[0].isdecimal():
            try:
                found[int(columns[0])] = float(columns[7]) * 1e9
            except (IndexError, ValueError) as error:
                raise results.ResultsError("an output of nccl-tests: expected a number in column 8, found "
                                           f"{checks.shown(line)}") from error
    return found


def version(text):
    found = re.search(r"nccl-tests version (\S+)", text)
    return found[1] if found else "of unknown version"


def gathered_bytes(record):
    """Returns the bytes of every rank's result: the maps of all ranks, decay and state."""
    return record["ranks"] * (record["state_bytes"] + 4 * record["heads"] * record["d_k"])


def ours(records, timing):
    """Returns {bytes gathered: record}, the newest record of each size."""
    wanted = [record for record in records if record["name"] == OURS and record["cadence"] == timing
              and results.why_no_time(record) is None]
    return {gathered_bytes(record): record for record in sorted(wanted, key=lambda record: record["time"])}


def blocks(machine, records, texts):
    """Yields a table for each output of nccl-tests beside the records. `texts` is {name of a file: its text}."""
    for name, text in sorted(texts.items()):
        timing = FILE.fullmatch(name)
        if timing:
            yield from compared(machine, timing[1], tests(text), version(text), ours(records, timing[1]))


def compared(machine, timing, theirs, of_version, here):
    sizes = sorted(set(theirs) & set(here))
    if not sizes:
        yield Text(f"`nccl-tests-{timing}.txt` of {machine} has no size that a record of `{OURS}` has too.")
        return
    title = f"busbw of ncclAllGather by bytes gathered, GB/s ({machine}, {timing})"
    yield Table(f"nccl_tests_{machine}_{timing}", title, [words.binary_size(size) for size in sizes], [
                    Row("nccl-tests", f"measured, {of_version}", [
                        bandwidth(theirs[size], f"nccl-tests {of_version} on {machine}") for size in sizes]),
                    Row(f"`{OURS}`", "measured, nccl native", [
                        bandwidth(here[size]["busbw_bytes_per_second"], cells.origin(here[size], machine), here[size])
                        for size in sizes]),
                    Row("", "ours / nccl-tests", [quotient(here[size], theirs[size]) for size in sizes])],
                [f"Out of place; goal: within {100 * WITHIN:.0f} %. nccl-tests prints means, ours are medians of the "
                 "slowest rank."])


def bandwidth(rate, origin, record=None):
    return cells.Cell(f"{rate * 1e-9:.1f}", f"{rate * 1e-9:.6g}", "GB/s", cells.MEASURED, origin,
                      record["commit"] if record else "", record["time"] if record else "",
                      run=record["run"] if record else "")


def quotient(record, rate):
    value = record["busbw_bytes_per_second"] / rate
    return cells.derived(value, f"{value:.2f}", "", "measured / measured")._replace(off=abs(value - 1) > WITHIN)
