# SPDX-License-Identifier: Apache-2.0
"""DistFlashAttention's iterations of a model beside its schedule simulated, and those of Ulysses beside both."""

from baton import results
from baton.paper import cells
from baton.paper.cells import SIMULATED, Cell, Row, digits
from baton.paper.page import Table, told
from baton.paper.sources import A100, A100_PAIR, having

LAYERS, HEADS = 32, 32
MORE_HEADS, PADDED = 33, 48  # of the paper's second model, and as 16 ranks can share them
COLUMNS = ((8, 64), (8, 128), (8, 256), (16, 128), (16, 256), (16, 512))  # GPUs, thousands of tokens
LONG = COLUMNS[-2:]
OURS, ULYSSES = "dist_flash_attention", "ulysses_softmax"
CARDS = {A100_PAIR: "100 Gb/s a card", A100: "200 Gb/s a card"}
NODE = 8  # ranks, under which there is no card


def blocks(sources):
    return [iterations_table(sources), *told(lambda: doubling_text(sources)),
            ulysses_table(sources), *told(lambda: ulysses_text(sources), lambda: heads_text(sources))]


# --- Cells ----------------------------------------------------------------------------------------------


def record_of(sources, topology, name, gpus, length, which="both", mode="overlapped", heads=HEADS):
    """Returns the record of one case, None without its time."""
    found = sources.on(topology, bench="operator", name=name, ranks=gpus, tokens=length * 1024 // gpus, heads=heads,
                       dtype="bf16", mode=mode, **{"pass": which})
    return next((record for record in found if results.why_no_time(record) is None), None)


def seconds(sources, topology, *case, **more):
    """Returns the seconds of one layer. Throws KeyError without the record."""
    record = record_of(sources, topology, *case, **more)
    if record is None:
        raise KeyError(case)
    return record["median_seconds"]


def model(record):
    """Returns the time of the attention of all layers."""
    if record is None:
        return None
    value = LAYERS * record["median_seconds"]
    return Cell(digits(value), f"{value:.6g}", "s", SIMULATED, cells.origin(record, ""), record["commit"], record["time"],
                f"{LAYERS} layers")


def models(sources, topology, name, columns, **more):
    return [model(record_of(sources, topology, name, *column, **more)) for column in columns]


def printed(sources, method, columns, of="LLaMA-7B"):
    rows = having(sources.published["dist_flash_attention"], method=method, model=of, unit="s an iteration")
    found = {(int(row["gpus"]), int(row["seq_len"].removesuffix("K"))): cells.published(row) for row in rows}
    return [found.get(column) for column in columns]


def number(cell):
    if cell is None:
        raise KeyError("a missing cell")
    return float(cell.value)


def plain(ratios):
    """Returns ratios of unlike things, which are not marked as far from 1."""
    return [one and one._replace(off=False) for one in ratios]


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


# --- Iterations -----------------------------------------------------------------------------------------


def headings(columns):
    return [f"{gpus} GPUs, {length}K" for gpus, length in columns]


def on_cards(sources, name, columns, **more):
    """{words: cells} of both topologies; on one node they are the same machine."""
    return {words: [cell if topology == A100_PAIR or gpus > NODE else None for cell, (gpus, _) in zip(
        models(sources, topology, name, columns, **more), columns)] for topology, words in CARDS.items()}


def iterations_table(sources):
    theirs = printed(sources, "DistFlashAttn", COLUMNS)
    ours = on_cards(sources, OURS, COLUMNS)
    square = beyond_twice(theirs)
    rows = [Row("DistFlashAttention, LLaMA-7B, an iteration", "published", theirs)]
    for label, words in zip((f"`{OURS}`, {LAYERS} layers", ""), ours):
        rows.append(Row(label, f"simulated, {words}", ours[words]))
    rows += [Row("", f"simulated / published, {words}", plain(map(cells.ratio, row, theirs))) for words, row in ours.items()]
    rows.append(Row("beyond twice the time of half the tokens", "published, derived", square))
    for words, row in ours.items():
        ours_square = beyond_twice(row)
        rows += [Row("", f"simulated, derived, {words}", ours_square),
                 Row("", "simulated / published", list(map(cells.ratio, ours_square, square)))]
    return Table("dist_flash_attention", "DistFlashAttention, LLaMA-7B on A100, s", headings(COLUMNS), rows, [
        f"Simulated: {LAYERS} times one layer's causal attention, {HEADS} heads of 128 in bf16, forward and backward; a whole "
        "iteration has products of weights, gradients' exchanges and an optimizer besides."])


def doubling_text(sources):
    theirs = beyond_twice(printed(sources, "DistFlashAttn", COLUMNS))
    ours = on_cards(sources, OURS, COLUMNS)
    inside, (_, across), (_, wide) = ([number(cell) / number(other) for cell, other, (gpus, _) in zip(
        beyond_twice(row), theirs, COLUMNS) if other is not None and (gpus > NODE) == is_across]
        for row, is_across in ((ours[CARDS[A100_PAIR]], False), (ours[CARDS[A100_PAIR]], True), (ours[CARDS[A100]], True)))
    return ("**DistFlashAttention: iterations.** An iteration has more than attention, and the rest of it grows with the "
            "tokens or not at all. So what doubled tokens add to twice the time is attention's, where messages are hidden. "
            f"On one node ours is {digits(min(inside))} to {digits(max(inside))} of the published, on two at 512K "
            f"{digits(across)} with cards of 100 Gb/s and {digits(wide)} with cards of 200: the topology has the best rates "
            "of FlashAttention-2 and of large products, which the paper's own kernels need not reach. At 256K on two nodes "
            "half the tokens do not hide the messages, and the difference of small numbers says little.")


# --- Ulysses beside it ----------------------------------------------------------------------------------


def ulysses_table(sources):
    theirs, other = (printed(sources, name, LONG) for name in ("DistFlashAttn", "DeepSpeed-Ulysses"))
    gap = list(map(minus, other, theirs))
    rows = [Row("DeepSpeed-Ulysses, LLaMA-7B, an iteration", "published", other)]
    ours = on_cards(sources, ULYSSES, LONG)
    rows += [Row(label, f"simulated, {words}", row)
             for label, (words, row) in zip((f"`{ULYSSES}`, {LAYERS} layers", ""), ours.items())]
    rows.append(Row("Ulysses less DistFlashAttention", "published, derived", gap))
    again = on_cards(sources, ULYSSES, LONG, which="forward")
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
        simulated = (models(sources, A100_PAIR, name, LONG, heads=number) for number in (heads, HEADS))
        yield Row(f"{title}, LLaMA-33H, an iteration", "published", more)
        yield Row(f"LLaMA-33H over LLaMA-7B, {title}", "published / published", plain(map(cells.ratio, more, fewer)))
        yield Row(f"{heads} over {HEADS} heads, `{name}`", "simulated / simulated", plain(map(cells.ratio, *simulated)))


def ulysses_text(sources):
    gpus, length = LONG[-1]
    times = {name: LAYERS * seconds(sources, A100, name, gpus, length) for name in (ULYSSES, OURS)}
    forward = LAYERS * seconds(sources, A100, ULYSSES, gpus, length, which="forward")
    theirs = number(minus(printed(sources, "DeepSpeed-Ulysses", LONG)[-1], printed(sources, "DistFlashAttn", LONG)[-1]))
    gap = times[ULYSSES] - times[OURS]
    return (f"**DistFlashAttention beside Ulysses.** At {length}K tokens the paper has Ulysses {theirs:.1f} s behind; "
            f"attention alone, simulated with cards of 200 Gb/s, has it {abs(gap):.1f} s {'behind' if gap > 0 else 'ahead'}. "
            "The paper's third contribution keeps attention's result, so its forward pass is not computed again for the "
            f"backward one. If Ulysses's runs computed it again, as is usual, that adds {forward:.1f} s at our rates, and "
            f"{gap + forward:.1f} s are explained. Slower kernels than ours add to that. The paper does not say how these "
            "runs were set.")


def heads_text(sources):
    theirs, base = (number(printed(sources, "DeepSpeed-Ulysses", LONG, of)[-1]) for of in ("LLaMA-33H", "LLaMA-7B"))
    ours = (seconds(sources, A100_PAIR, ULYSSES, *LONG[-1], heads=PADDED) / seconds(sources, A100_PAIR, ULYSSES, *LONG[-1]))
    return (f"**{MORE_HEADS} heads.** The published model with {MORE_HEADS} heads takes Ulysses {theirs / base:.2f} times as "
            f"long as that with {HEADS}, and {PADDED} heads simulated take {ours:.2f} times as long: what they cost is padding "
            f"to a multiple of 16. `{OURS}` cuts tokens and pays for one head.")
