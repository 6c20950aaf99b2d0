# SPDX-License-Identifier: Apache-2.0
"""ZeCO's tables 5 and 6, throughput in training with 16K and 32K tokens a GPU: published, simulated, and the difference
cell by cell.

A step is taken apart as block times + sharding + exposed exchange + what the 8-GPU cell alone fits + the rest. The sum
of all five is the published step.
"""

from baton import results
from baton.paper import block_times, cells, settings, step_parts
from baton.paper.cells import DERIVED, Cell, Row, digits
from baton.paper.page import Section, Table, Text, told
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
NEAR = 0.15  # what a fitted cell may be off
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
             f"{block_times.told(sources, MODEL, TOKENS)} The paper averages 100 steps after 5 of warm-up; a simulated step is "
             "the same every time, so one stands for all of them. A fitted cell is the simulated step and a constant, the "
             f"one that makes the cell at {FITTED} GPUs the published one; so the block times cancel out of it, and what "
             "it predicts is the growth with the GPUs."),
        *(throughput(sources, number, columns) for number in reversed(TABLES)),
        Table("zeco_throughput_parts", "Where a published step of table 6 goes, ms", columns, list(part_rows(steps)), [
            "Block times: the unsharded step without an exchange. Sharding: what gathering weights and scattering "
            "gradients adds. Exchange: what stays exposed. Fitted: the constant of the 8-GPU cell. The rest is what is "
            "left of the published step."]),
        *zeco_blocks.tables(sources, TABLES),
        *told(lambda: verdict(steps), lambda: order(steps), lambda: missing(steps), lambda: lasp1(steps)),
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

    def fitted(self, title, name, ranks):
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


# --- Throughput -----------------------------------------------------------------------------------------


def speed_rows(steps):
    for title, name, exchange in METHODS:
        published = published_cells(steps.rows, RANKS, method=title)
        yield Row(title, "published", published)
        yield Row("", "simulated", [simulated_speed(steps.records.get((name, ranks))) for ranks in RANKS])
        fits = [("simulated, fitted at 8 GPUs", lambda ranks: steps.fitted(title, name, ranks))]  # pylint: disable=cell-var-from-loop
        if exchange:
            fits.append(("fitted, exchange as in table 2",
                         lambda ranks: steps.as_alone(title, name, exchange, ranks)))  # pylint: disable=cell-var-from-loop
        for kind, step in fits:
            found = [fitted_speed(steps, step, ranks) if (title, ranks) in steps.published else None for ranks in RANKS]
            yield Row("", kind, found)
            yield Row("", "fitted / published − 1", [cells.difference(*pair) for pair in zip(found, published)])
    for name in AS_RELEASED:
        yield Row(f"`{name}`", "simulated", [simulated_speed(steps.records.get((name, ranks))) for ranks in RANKS])


def simulated_speed(record):
    if record is None:
        return None
    cell = cells.timed(record)
    value = record["tokens"] / record["median_seconds"]
    return cell._replace(text=digits(value), value=f"{value:.6g}", unit="tokens/s per GPU")


def fitted_speed(steps, step, ranks):
    try:
        value = 1e3 * steps.tokens / step(ranks)
    except KeyError:
        return None
    return Cell(digits(value), f"{value:.6g}", "tokens/s per GPU", DERIVED, "the simulated step and a constant")


# --- Where a step goes ----------------------------------------------------------------------------------


def part_rows(steps):
    for title, name, _ in METHODS:
        found = [parts(steps, title, name, ranks) for ranks in RANKS]
        if not any(found):
            continue
        yield Row(title, "published, derived", [part and published_step(steps, title, ranks) for part, ranks in zip(found, RANKS)])
        for what in step_parts.NAMES:
            yield Row("", what, [part and cells.derived(part[what], step_parts.shown(part[what]), "ms", "published − simulated")
                                 for part in found])


def published_step(steps, title, ranks):
    value = steps.published[title, ranks]
    row = next(row for row in steps.rows if row["method"] == title and row["gpus"] == str(ranks))
    return cells.derived(value, step_parts.shown(value), "ms", f"tokens / {row['source']}")


def parts(steps, title, name, ranks):
    """Returns {part: ms} of a published step, None if a number is missing."""
    try:
        return step_parts.parts(published=steps.published[title, ranks], blocks=steps.blocks,
                                without=steps.simulated["local", ranks], whole=steps.simulated[name, ranks],
                                constant=steps.constant(title, name))
    except KeyError:
        return None


# --- Words ----------------------------------------------------------------------------------------------


def errors(steps, step):
    """{(title, ranks): fitted / published − 1 of the throughput} of dp, ZeCO and LASP-2, 8 GPUs left out."""
    return {(title, ranks): steps.published[title, ranks] / step(title, name, exchange, ranks) - 1
            for title, name, exchange in METHODS[:3] for ranks in RANKS[1:] if (title, ranks) in steps.published}


def verdict(steps):
    plain = errors(steps, lambda title, name, _, ranks: steps.fitted(title, name, ranks))
    alone = errors(steps, steps.as_alone)
    return (f"**Fitted on the 8-GPU column alone**, {step_parts.within(plain, NEAR)}. With the exchange as the paper's "
            f"table 2 has it, {step_parts.within(alone, NEAR)}.")


def order(steps):
    published, simulated = (
        [title for title, *_ in sorted(METHODS, key=lambda one: time(*one[:2]))] for time in (
            lambda title, _: steps.published[title, 64], lambda _, name: steps.simulated[name, 64]))
    fitted = {ranks: sorted((one for one in METHODS if (one[0], ranks) in steps.published),
                            key=lambda one: steps.fitted(*one[:2], ranks)) for ranks in RANKS}
    held = all([one[0] for one in found] == sorted((one[0] for one in found), key=lambda title: steps.published[title, ranks])
               for ranks, found in fitted.items())
    words = "is" if simulated == published else "is not"
    return (f"**The order of methods** {words} the published one at 64 GPUs before any fit: {', '.join(simulated)}, where "
            f"the paper has {', '.join(published)}. Fitted at 8 GPUs it is the published one "
            f"{'at every number of GPUs' if held else 'not everywhere'}.")


def missing(steps):
    title, name, exchange = METHODS[2]
    last = RANKS[-1]
    growth = steps.published[title, last] - steps.published[title, FITTED]
    ours = steps.simulated[name, last] - steps.simulated[name, FITTED]
    alone = 2 * steps.layers * (steps.alone[exchange, last] - steps.alone[exchange, FITTED])
    here = steps.published["DP baseline", last] - steps.published["DP baseline", FITTED]
    return (f"**The missing term** is the exchange itself. From {FITTED} to {last} GPUs LASP-2's published step grows by "
            f"{digits(growth)} ms, data-parallel's by {digits(here)} ms, and the simulated one by {digits(ours)} ms. The "
            f"paper's own all-gather alone, {2 * steps.layers} times a step, grows by {digits(alone)} ms in its table 2. So the "
            "model's figures come near an exchange that nothing hides, on links as slow as that table's, and not near the links of "
            f"this topology; {digits(growth - here - alone)} ms of the growth are in neither.")


def lasp1(steps):
    """What a published hop of LASP-1 takes, beside the two forms of it that are simulated."""
    title, many = METHODS[3][0], 64
    hops = 2 * steps.layers * (many - FITTED)
    hop, local = (steps.published[name, many] - steps.published[name, FITTED] for name in (title, "DP baseline"))
    ours = [(steps.simulated[name, many] - steps.simulated[name, FITTED]) / hops for name in ("lasp1", "lasp1_as_released")]
    return (f"**LASP-1** grows by {digits((hop - local) / hops)} ms for each GPU, layer and pass more than data-parallel, in "
            f"simulation by {digits(ours[0])} ms in the published order and by {digits(ours[1])} ms as released, where a rank "
            "computes nothing before it has received. What was timed lies between the two, as for the operator; no fit of one "
            "constant predicts it.")
