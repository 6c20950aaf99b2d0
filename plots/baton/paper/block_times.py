# SPDX-License-Identifier: Apache-2.0
"""The time of a model's blocks without any exchange: measured on one GPU where a record says so, else simulated."""

import statistics

from baton import results
from baton.paper.cells import digits

LINE = "dp"


def measured(sources, model, tokens):
    """Returns [(machine, record)] of blocks that one GPU ran alone, the newest first."""
    found = [(machine, record) for machine, records in sources.measured.items() for record in records
             if record["bench"] == "model" and record["model"] == model and record["tokens"] == tokens
             and record["line"] == LINE and record["ranks"] == 1 and not record["beside"] and record.get("device")
             and results.why_no_time(record) is None]
    return sorted(found, key=lambda one: one[1]["time"], reverse=True)


def simulated(sources, model, tokens, topology):
    """Returns the unsharded records of the data-parallel line."""
    return [record for record in sources.on(topology, bench="model", model=model, tokens=tokens, line=LINE, beside="")
            if results.why_no_time(record) is None]


def step(sources, model, tokens, topology):
    """Returns (seconds of all layers as simulated, the same as measured where they are, else as simulated); None if
    nothing was simulated."""
    found = simulated(sources, model, tokens, topology)
    if not found:
        return None
    here = statistics.median(record["median_seconds"] for record in found)
    for _, record in measured(sources, model, tokens)[:1]:
        return here, record["median_seconds"] / record["layers"] * found[0]["layers"]
    return here, here


def origin(sources, model, tokens):
    """Says where the block times come from."""
    for machine, record in measured(sources, model, tokens)[:1]:
        block = record["median_seconds"] / record["layers"]
        return (f"Block times are measured: {digits(1e3 * block)} ms a block forward and backward on one "
                f"{record['device']['gpu']} (`results/{machine}`, commit {record['commit']}); the simulated steps have the "
                "rates of the topology.")
    return ("No record of `results/` has the time of such a block on a GPU yet, so block times are simulated too: each "
            "kernel at the topology's rate of its device.")
