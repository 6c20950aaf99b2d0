# SPDX-License-Identifier: Apache-2.0
"""ZeCO's tables 5 and 6, throughput in training with 16K and 32K tokens a GPU: published, simulated, and the difference
cell by cell.

A step is taken apart as block times + sharding + exposed exchange + what the 8-GPU cell alone fits + the rest. The sum
of all five is the published step.
"""

from baton import results
from baton.paper import block_times, cells, settings, step_parts
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text, sentences
from baton.paper.sections import zeco_blocks
from baton.paper.sections.zeco_table2 import GATHER, SCAN
from baton.paper.sources import H100, published_cells

TABLES = {number: settings.flags(settings.table(number))["tokens"] for number in (5, 6)}
TOKENS = TABLES[6]  # of the table whose cells are known
PUBLISHED = {TOKENS: "zeco_table_throughput_32k"}
RANKS = (8, 64, 128, 256)
FITTED = RANKS[0]
MODEL = zeco_blocks.MODEL
SHARDED = "sharded weights"
# The paper's row, our method, and the exchange that the paper timed alone, in its table 2.
METHODS = (("DP baseline", "local", None), ("ZeCO", "zeco", SCAN), ("LASP-2", "lasp2", GATHER), ("LASP-1", "lasp1", None))
AS_RELEASED = ("lasp2_as_released", "lasp1_as_released")


def section(sources):
    columns = [str(ranks) for ranks in RANKS]
    steps = Steps(sources, TOKENS)
    return Section("Models: ZeCO's tables 5 and 6", [
        Text("Tokens a second of a GPU while GLA-1B is trained, with 16K (table 5) and 32K tokens (table 6) on each. Simulated is "
             f"`model_bench --model {MODEL}`: 20 blocks of width 2048 with 32 heads of 64, as the paper's set-up says, forward "
             "and backward, weights and gradients sharded over all GPUs, on `topologies/dgx-h100-32x8.json`. "
             f"{block_times.origin(sources, MODEL, TOKENS)} The paper averages 100 steps after 5 of warm-up; a simulated step is "
             "the same every time, so one stands for all of them. A fitted cell is the simulated step and a constant, the "
             f"one that makes the cell at {FITTED} GPUs the published one; so the block times cancel out of it, and what "
             "it predicts is the growth with the GPUs."),
        *(throughput(sources, number, columns) for number in reversed(TABLES)),
        Table("zeco_throughput_parts", "Where a published step of table 6 goes, ms", columns, list(part_rows(steps)), [
            "Block times: the unsharded step without an exchange. Sharding: what gathering weights and scattering "
            "gradients adds. Exchange: what stays exposed. Fitted: the constant of the 8-GPU cell. The rest is what is "
            "left of the published step."]),
        *zeco_blocks.tables(sources, TABLES),
        *sentences(lambda: verdict(steps)),
        Text("The paper does not tell how data, batch and weights were cut, the width of its heads and its MLP, or the type of the "
             f"states on the wire. Assumed: one sequence over all GPUs, sharded weights in fp32, states in fp32, and `{MODEL}`, "
             "whose heads are width / H = 64 wide and whose MLP is that of flash-linear-attention's GLA-1B.")])


def throughput(sources, number, columns):
    tokens = TABLES[number]
    of_method = ("As in table 2: the growth of the simulated exchange is replaced by that of the exchange alone as the paper's "
                 "own table 2 has it, two a layer, with nothing hidden. It sees no other cell of this table than that at 8 GPUs.")
    notes = ["A token counts once, forward and backward. `_as_released` computes nothing beside its exchange."]
    notes += (["16 and 32 GPUs were in no source, nor LASP-1 above 64.", of_method] if tokens in PUBLISHED else
              ["Nobody whom we could read published a cell of this table, so nothing is fitted to it."])
    return Table(f"zeco_table{number}", f"Table {number}: tokens/s a GPU, {tokens // 1024}K tokens a GPU", columns,
                 list(speed_rows(Steps(sources, tokens))), notes)


class Steps:
    """The steps of all methods in ms: {(method, ranks): ms} as published, as simulated, and their parts."""

    def __init__(self, sources, tokens):
        self.tokens = tokens
        self.rows = sources.published.get(PUBLISHED.get(tokens), [])
        self.published = {(row["method"], int(row["gpus"])): 1e3 * tokens / float(row["value"]) for row in self.rows}
        self.records = {(record["name"], record["ranks"]): record for record in sharded(sources, tokens)}
        self.simulated = {place: 1e3 * record["median_seconds"] for place, record in self.records.items()}
        blocks = block_times.step(sources, MODEL, tokens, H100)
        self.blocks = blocks and tuple(1e3 * seconds for seconds in blocks)
        table2 = sources.published["zeco_table2"]
        self.alone = {(row["method"], int(row["gpus"])): float(row["value"]) for row in table2}
        self.layers = next((record["layers"] for record in self.records.values()), 0)

    def constant(self, title, name):
        """What the published step at 8 GPUs has and the simulated one has not. Throws KeyError."""
        return self.published[title, FITTED] - self.simulated[name, FITTED]

    def fitted(self, title, name, _, ranks):
        return self.simulated[name, ranks] + self.constant(title, name)

    def as_alone(self, title, name, exchange, ranks):
        """The fitted step with the growth of the exchange of table 2. Throws KeyError."""
        growth = self.alone[exchange, ranks] - self.alone[exchange, FITTED] if exchange else 0
        without = self.simulated["local", ranks] - self.simulated["local", FITTED]
        return self.published[title, FITTED] + without + 2 * self.layers * growth


def sharded(sources, tokens):
    """The simulated records of the data-parallel line and of whole methods, on sharded weights."""
    return [record for record in sources.on(H100, bench="model", model=MODEL, tokens=tokens, beside=SHARDED)
            if record["line"] in ("dp", "full") and results.why_no_time(record) is None]


# --- Rows -----------------------------------------------------------------------------------------------


def speed_rows(steps):
    for title, name, exchange in METHODS:
        published = published_cells(steps.rows, RANKS, method=title)
        yield Row(title, "published", published)
        yield Row("", "simulated", simulated_speeds(steps, name))
        fits = {"simulated, fitted at 8 GPUs": steps.fitted}
        if exchange:
            fits["fitted, exchange as in table 2"] = steps.as_alone
        for kind, step in fits.items():
            found = [step_parts.or_none(step, title, name, exchange, ranks) if (title, ranks) in steps.published else None
                     for ranks in RANKS]
            yield from step_parts.fitted_rows(kind, found, [steps.tokens] * len(RANKS), "tokens/s per GPU", published)
    for name in AS_RELEASED:
        yield Row(f"`{name}`", "simulated", simulated_speeds(steps, name))


def simulated_speeds(steps, name):
    return [cells.made_of(steps.records.get((name, ranks)), lambda record: record["tokens"] / record["median_seconds"],
                          "tokens/s per GPU") for ranks in RANKS]


def part_rows(steps):
    for title, name, _ in METHODS:
        found = [step_parts.or_none(parts, steps, title, name, ranks) for ranks in RANKS]
        if any(found):
            yield Row(title, "published, derived", [part and published_step(steps, title, ranks) for part, ranks in zip(found, RANKS)])
            for what in step_parts.NAMES:
                yield Row("", what, step_parts.part_cells(found, what))


def published_step(steps, title, ranks):
    value = steps.published[title, ranks]
    row = next(row for row in steps.rows if row["method"] == title and row["gpus"] == str(ranks))
    return cells.derived(value, step_parts.shown(value), "ms", f"tokens / {row['source']}")


def parts(steps, title, name, ranks):
    """Returns {part: ms}, whose sum is the published step. Throws KeyError if a number is missing."""
    if steps.blocks is None:
        raise KeyError("blocks")
    simulated, known = steps.blocks
    published, without, whole = steps.published[title, ranks], steps.simulated["local", ranks], steps.simulated[name, ranks]
    constant = steps.constant(title, name)
    return dict(zip(step_parts.NAMES, (known, without - simulated, whole - without, constant - (known - simulated),
                                       published - whole - constant)))


def verdict(steps):
    plain, alone = ({(title, ranks): steps.published[title, ranks] / step(title, name, exchange, ranks) - 1
                     for title, name, exchange in METHODS[:3] for ranks in RANKS[1:] if (title, ranks) in steps.published}
                    for step in (steps.fitted, steps.as_alone))
    return (f"**Fitted on the 8-GPU column alone**, {step_parts.within(plain)}. With the exchange as the paper's "
            f"table 2 has it, {step_parts.within(alone)}.")
