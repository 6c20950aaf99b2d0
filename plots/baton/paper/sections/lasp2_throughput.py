# SPDX-License-Identifier: Apache-2.0
"""LASP-2's table 6, 256K to 2048K tokens on 16 to 128 GPUs: published, simulated, and the difference cell by cell."""

from baton import results
from baton.paper import block_times, cells, step_parts
from baton.paper.cells import PUBLISHED, Row
from baton.paper.page import Section, Table, Text, sentences
from baton.paper.sections.zeco_throughput import SHARDED

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
             f"`topologies/dgx-a100-8x8.json` twice. {block_times.origin(sources, MODEL, 1024 * MOST_TOKENS)} The only fit is a "
             f"constant of time, the one that makes the cell of {FITTED[1]}K on {FITTED[0]} GPUs the published one. How weights "
             "were cut is not told, nor whether the optimiser or loading data is in a step: assumed are weights in fp32 sharded over "
             "all GPUs, and no optimiser."),
        Table("lasp2_throughput", "Tokens/s of all GPUs, by length of the sequence and GPUs", columns, list(speed_rows(steps)), [
            "Cells that the paper has out of memory are left out: 512K on 16, 1024K on 32 and 2048K on 64 GPUs. The "
            "simulator has no limit of memory."]),
        Table("lasp2_throughput_parts", "Where a published step goes, ms", columns, list(part_rows(steps)), [
            "Forward, backward and sharding: the simulated step without an exchange. Fitted: the constant of the first cell. "
            "The rest is what is left of the published step."]),
        *sentences(lambda: f"**Fitted on one cell**, {step_parts.within(errors(steps))}.")])


class Steps:
    """Steps in ms: {(ranks, thousands of tokens): ms} as published, and as simulated with and without the exchange."""

    def __init__(self, sources):
        self.rows = {(int(row["gpus"]), int(row["seq_len"].removesuffix("K"))): row
                     for row in sources.published["lasp2_throughput"] if row["value"] != "OOM"}
        self.published = {place: 1e3 * 1024 * place[1] / float(row["value"]) for place, row in self.rows.items()}
        self.records, alone = ({(record["ranks"], record["ranks"] * record["tokens"] // 1024): record for record in sources.on(
            TOPOLOGY, bench="model", model=MODEL, line=line, name=name, beside=SHARDED) if results.why_no_time(record) is None}
                               for line, name in (("full", METHOD), ("dp", "local")))
        self.simulated, self.without = ({place: 1e3 * record["median_seconds"] for place, record in found.items()}
                                        for found in (self.records, alone))

    def constant(self):
        """What the published step of the fitted cell has and the simulated one has not. Throws KeyError."""
        return self.published[FITTED] - self.simulated[FITTED]

    def fitted(self, place):
        return self.simulated[place] + self.constant()


def speed_rows(steps):
    published = [cells.published(steps.rows[place]) if place in steps.rows else None for place in CELLS]
    yield Row("LASP-2", PUBLISHED, published)
    yield Row("`lasp2`", "simulated", [cells.made_of(
        steps.records.get(place), lambda record: record["ranks"] * record["tokens"] / record["median_seconds"], "tokens/s")
        for place in CELLS])
    yield from step_parts.fitted_rows("simulated, fitted at 256K on 16", [step_parts.or_none(steps.fitted, place) for place in CELLS],
                                      [1024 * length for _, length in CELLS], "tokens/s", published)


def part_rows(steps):
    found = [step_parts.or_none(parts, steps, place) for place in CELLS]
    for name in next(filter(None, found), {}):
        is_first = name == PUBLISHED
        yield Row("LASP-2" * is_first, "published, derived" if is_first else name, step_parts.part_cells(found, name))


def parts(steps, place):
    return {PUBLISHED: steps.published[place], "forward, backward, sharding": steps.without[place],
            step_parts.EXCHANGE: steps.simulated[place] - steps.without[place], step_parts.FITTED: steps.constant(),
            step_parts.REST: steps.published[place] - steps.simulated[place] - steps.constant()}


def errors(steps):
    return {(f"{length}K", ranks): steps.published[ranks, length] / steps.fitted((ranks, length)) - 1
            for ranks, length in CELLS if (ranks, length) != FITTED and (ranks, length) in steps.published}
