# SPDX-License-Identifier: Apache-2.0
"""LASP-2's table 6, 256K to 2048K tokens on 16 to 128 GPUs: published, simulated, and the difference cell by cell."""

from baton import results
from baton.paper import block_times, cells, step_parts
from baton.paper.cells import DERIVED, PUBLISHED, Cell, Row, digits
from baton.paper.page import Section, Table, Text, told
from baton.paper.sections.zeco_throughput import NEAR, SHARDED

MODEL = "linear-llama3-1b"
TOPOLOGY = "dgx-a100-16x8"  # of twice the nodes of dgx-a100-8x8, written beside the page
RANKS = (16, 32, 64, 128)
LENGTHS = (256, 512, 1024, 2048)  # thousands of tokens of the whole sequence
MOST_TOKENS = 16  # thousands a GPU; more was out of memory, as published
FITTED = (16, 256)
METHOD = "lasp2"
CELLS = tuple((ranks, length) for length in LENGTHS for ranks in RANKS if length <= MOST_TOKENS * ranks)


def section(sources):
    steps = Steps(sources)
    columns = [f"{length}K on {ranks}" for ranks, length in CELLS]
    return Section("Models: LASP-2's table of throughput", [
        Text("Tokens a second of all GPUs while Linear-Llama3-1B is trained, one sequence over all of them, batch 1. "
             f"Simulated is `model_bench` with 16 blocks, weights sharded, on `{TOPOLOGY}`: the nodes of "
             f"`topologies/dgx-a100-8x8.json` twice. {block_times.told(sources, MODEL, 1024 * MOST_TOKENS)} The only fit is a "
             f"constant of time, the one that makes the cell of {FITTED[1]}K on {FITTED[0]} GPUs the published one."),
        Table("lasp2_throughput", "Tokens/s of all GPUs, by length of the sequence and GPUs", columns, speed_rows(steps), [
            "Cells that the paper has out of memory are left out: 512K on 16, 1024K on 32 and 2048K on 64 GPUs. The "
            "simulator has no limit of memory."]),
        Table("lasp2_throughput_parts", "Where a published step goes, ms", columns, part_rows(steps), [
            "Forward, backward and sharding: the simulated step without an exchange. Fitted: the constant of the first cell. "
            "The rest is what is left of the published step."]),
        *told(lambda: verdict(steps), lambda: missing(steps)),
        Text("How weights were cut is not told, nor whether the optimiser or loading data is in a step. Assumed: weights in "
             "fp32 sharded over all GPUs, no optimiser. Without sharding the simulated step of 2048K on 128 GPUs is "
             f"{unsharded(sources)}.")])


class Steps:
    """Steps in ms: {(ranks, thousands of tokens): ms} as published, and as simulated with and without the exchange."""

    def __init__(self, sources):
        self.rows = {(int(row["gpus"]), int(row["seq_len"].removesuffix("K"))): row
                     for row in sources.published["lasp2_throughput"] if row["value"] != "OOM"}
        self.published = {place: 1e3 * 1024 * place[1] / float(row["value"]) for place, row in self.rows.items()}
        self.records = of(sources, "full", METHOD)
        self.simulated = milliseconds(self.records)
        self.without = milliseconds(of(sources, "dp", "local"))

    def constant(self):
        """What the published step of the fitted cell has and the simulated one has not. Throws KeyError."""
        return self.published[FITTED] - self.simulated[FITTED]


def of(sources, line, name, beside=SHARDED):
    return {(record["ranks"], record["ranks"] * record["tokens"] // 1024): record
            for record in sources.on(TOPOLOGY, bench="model", model=MODEL, line=line, name=name, beside=beside)
            if results.why_no_time(record) is None}


def milliseconds(records):
    return {place: 1e3 * record["median_seconds"] for place, record in records.items()}


# --- The tables -----------------------------------------------------------------------------------------


def speed_rows(steps):
    published = [cells.published(steps.rows[place]) if place in steps.rows else None for place in CELLS]
    simulated = [speed(steps.records.get(place), place) for place in CELLS]
    fitted = [fitted_speed(steps, place) for place in CELLS]
    return [Row("LASP-2", PUBLISHED, published), Row("`lasp2`", "simulated", simulated),
            Row("", "simulated, fitted at 256K on 16", fitted),
            Row("", "fitted / published − 1", [cells.difference(*pair) for pair in zip(fitted, published)])]


def speed(record, place):
    if record is None:
        return None
    value = 1024 * place[1] / record["median_seconds"]
    return cells.timed(record)._replace(text=digits(value), value=f"{value:.6g}", unit="tokens/s")


def fitted_speed(steps, place):
    try:
        value = 1e3 * 1024 * place[1] / (steps.simulated[place] + steps.constant())
    except KeyError:
        return None
    return Cell(digits(value), f"{value:.6g}", "tokens/s", DERIVED, "the simulated step and a constant")


def part_rows(steps):
    found = [parts(steps, place) for place in CELLS]
    names = list(next(filter(None, found), {}))
    return [Row("LASP-2" if name == PUBLISHED else "", "published, derived" if name == PUBLISHED else name, [part and cells.derived(
        part[name], step_parts.shown(part[name]), "ms", "published − simulated") for part in found]) for name in names]


def parts(steps, place):
    try:
        without, whole, constant = steps.without[place], steps.simulated[place], steps.constant()
        return {PUBLISHED: steps.published[place], "forward, backward, sharding": without,
                step_parts.EXCHANGE: whole - without, step_parts.FITTED: constant,
                step_parts.REST: steps.published[place] - whole - constant}
    except KeyError:
        return None


# --- Words ----------------------------------------------------------------------------------------------


def verdict(steps):
    constant = steps.constant()
    errors = {(f"{length}K", ranks): steps.published[ranks, length] / (steps.simulated[ranks, length] + constant) - 1
              for ranks, length in CELLS if (ranks, length) != FITTED and (ranks, length) in steps.published}
    return f"**Fitted on one cell**, {step_parts.within(errors, NEAR)}."


def missing(steps):
    """What the published steps follow in place of the simulated ones. Throws KeyError where a cell is missing."""
    short, long = (128, 256), (128, 2048)
    slope = (steps.published[long] - steps.published[short]) / (long[1] - short[1])
    start = steps.published[short] - slope * short[1]
    worst = max(abs((start + slope * place[1]) / steps.published[place] - 1) for place in CELLS)
    share = steps.simulated[long] / steps.published[long]
    return (f"**The missing term** is no exchange. A straight line through two cells of 128 GPUs, {digits(start)} ms and "
            f"{digits(slope)} ms for each thousand tokens of the whole sequence, meets all cells to {100 * worst:.1f} %, whether "
            "16 or 128 GPUs share the sequence. So a published step is mostly a constant, such as launches from the host, "
            "the optimiser or data, and what grows looks like work that every GPU does for the whole sequence. The work that the "
            f"GPUs share and the exchange, which are simulated here, are {100 * share:.0f} % of the step of 2048K on 128 GPUs. "
            "The paper does not tell what the others are.")


def unsharded(sources):
    found = milliseconds(of(sources, "full", METHOD, "")).get((128, 2048))
    with_shards = milliseconds(of(sources, "full", METHOD)).get((128, 2048))
    if found is None or with_shards is None:
        return "not simulated here"
    return f"{digits(found)} ms in place of {digits(with_shards)} ms"
