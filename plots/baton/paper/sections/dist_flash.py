# SPDX-License-Identifier: Apache-2.0
"""DistFlashAttention's iterations of a model beside its schedule simulated, and those of Ulysses beside both."""

from baton import results
from baton.paper import cells
from baton.paper.cells import Row, digits
from baton.paper.page import Table
from baton.paper.sources import A100, A100_PAIR, having

LAYERS, HEADS = 32, 32
MORE_HEADS, PADDED = 33, 48  # of the paper's second model, and as 16 ranks can share them
COLUMNS = ((8, 64), (8, 128), (8, 256), (16, 128), (16, 256), (16, 512))  # GPUs, thousands of tokens
LONG = COLUMNS[-2:]
OURS, ULYSSES = "dist_flash_attention", "ulysses_softmax"
CARDS = {A100_PAIR: "100 Gb/s a card", A100: "200 Gb/s a card"}
NODE = 8  # ranks, under which there is no card


# --- Cells ----------------------------------------------------------------------------------------------


def models(sources, topology, name, columns, which="both", heads=HEADS):
    """Returns the time of the attention of all layers for each column."""
    found = {(record["ranks"], record["ranks"] * record["tokens"] // 1024): record for record in reversed(sources.on(
        topology, bench="operator", name=name, heads=heads, dtype="bf16", mode="overlapped", **{"pass": which}))
        if results.why_no_time(record) is None}
    return [cells.made_of(found.get(column), lambda record: LAYERS * record["median_seconds"], "s", note=f"{LAYERS} layers")
            for column in columns]


def on_cards(sources, name, columns, **more):
    """{words: cells} of both topologies; on one node they are the same machine."""
    return {words: [cell if topology == A100_PAIR or gpus > NODE else None for cell, (gpus, _) in zip(
        models(sources, topology, name, columns, **more), columns)] for topology, words in CARDS.items()}


def printed(sources, method, columns, of="LLaMA-7B"):
    rows = having(sources.published["dist_flash_attention"], method=method, model=of, unit="s an iteration")
    found = {(int(row["gpus"]), int(row["seq_len"].removesuffix("K"))): cells.published(row) for row in rows}
    return [found.get(column) for column in columns]


def beyond_twice(row):
    """Returns what doubled tokens add to twice the time, for each column whose half is there on as many GPUs."""
    by_column = dict(zip(COLUMNS, row))
    return [plus(by_column[gpus, length], by_column.get((gpus, length // 2)), -2) for gpus, length in COLUMNS]


def plus(cell, other, times=1):
    """Returns the sum of a cell and a multiple of another, in seconds."""
    if cell is None or other is None:
        return None
    value = float(cell.value) + times * float(other.value)
    return cells.derived(value, digits(value).replace("-", "−"), "s", f"sum of {cell.kind} cells, {times:+d} times the other")


def minus(cell, other):
    return plus(cell, other, -1)


def ratios(over, under):
    """Returns ratios of unlike things, which are not marked as far from 1."""
    return cells.plain(map(cells.ratio, over, under))


def headings(columns):
    return [f"{gpus} GPUs, {length}K" for gpus, length in columns]


# --- Tables ---------------------------------------------------------------------------------------------


def iterations_table(sources):
    theirs = printed(sources, "DistFlashAttn", COLUMNS)
    ours = on_cards(sources, OURS, COLUMNS)
    square = beyond_twice(theirs)
    rows = [Row("DistFlashAttention, LLaMA-7B, an iteration", "published", theirs)]
    rows += [Row(label, f"simulated, {words}", ours[words]) for label, words in zip((f"`{OURS}`, {LAYERS} layers", ""), ours)]
    rows += [Row("", f"simulated / published, {words}", ratios(row, theirs)) for words, row in ours.items()]
    rows.append(Row("beyond twice the time of half the tokens", "published, derived", square))
    for words, row in ours.items():
        rows += [Row("", f"simulated, derived, {words}", beyond_twice(row)),
                 Row("", "simulated / published", list(map(cells.ratio, beyond_twice(row), square)))]
    return Table("dist_flash_attention", "DistFlashAttention, LLaMA-7B on A100, s", headings(COLUMNS), rows, [
        f"Simulated: {LAYERS} times one layer's causal attention, {HEADS} heads of 128 in bf16, forward and backward; a whole "
        "iteration has products of weights, gradients' exchanges and an optimizer besides."])


def ulysses_table(sources):
    theirs, other = (printed(sources, name, LONG) for name in ("DistFlashAttn", "DeepSpeed-Ulysses"))
    ours, again = on_cards(sources, ULYSSES, LONG), on_cards(sources, ULYSSES, LONG, which="forward")
    rows = [Row("DeepSpeed-Ulysses, LLaMA-7B, an iteration", "published", other)]
    rows += [Row(label, f"simulated, {words}", row)
             for label, (words, row) in zip((f"`{ULYSSES}`, {LAYERS} layers", ""), ours.items())]
    rows.append(Row("Ulysses less DistFlashAttention", "published, derived", list(map(minus, other, theirs))))
    for words, mine in on_cards(sources, OURS, LONG).items():
        gaps = list(map(minus, ours[words], mine))
        rows += [Row("", f"simulated, derived, {words}", gaps),
                 Row("", "the same, Ulysses forward twice", list(map(plus, gaps, again[words])))]
    return Table("dist_flash_ulysses", "DeepSpeed-Ulysses beside DistFlashAttention on 16 A100, s", headings(LONG),
                 [*rows, *more_heads_rows(sources)], [
                     f"LLaMA-33H has {MORE_HEADS} heads, which 16 ranks cannot share: `{ULYSSES}` refuses them, and the "
                     f"simulated row has {PADDED}, as if they were padded."])


def more_heads_rows(sources):
    """Yields for both methods the model of more heads, and what it costs over that of fewer."""
    for title, method, name, heads in (("DistFlashAttention", "DistFlashAttn", OURS, MORE_HEADS),
                                       ("DeepSpeed-Ulysses", "DeepSpeed-Ulysses", ULYSSES, PADDED)):
        more, fewer = (printed(sources, method, LONG, of) for of in ("LLaMA-33H", "LLaMA-7B"))
        yield Row(f"{title}, LLaMA-33H, an iteration", "published", more)
        yield Row(f"LLaMA-33H over LLaMA-7B, {title}", "published / published", ratios(more, fewer))
        yield Row(f"{heads} over {HEADS} heads, `{name}`", "simulated / simulated", ratios(*(
            models(sources, A100_PAIR, name, LONG, heads=number) for number in (heads, HEADS))))
