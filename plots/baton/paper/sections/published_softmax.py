# SPDX-License-Identifier: Apache-2.0
"""Softmax methods at the settings of the papers that measured them: published cells beside simulated ones."""

from baton import results
from baton.paper import cells
from baton.paper.cells import DERIVED, Row, digits
from baton.paper.page import Section, Table, Text
from baton.paper.sections import dist_flash
from baton.paper.sources import A10, A100, A100_PAIR, H100, by, having, published_cells

# TokenRing's box.
TOKEN_RANKS, TOKEN_TOKENS, TOKEN_HEADS = 4, 6000, 32
TOKEN_METHODS = (("TokenRing", "token_ring_zigzag"), ("Ring Attention", "ring_attention_zigzag"))
TURNS = ("0", "1", "2")
# MagiAttention's suite, whose settings are LongCA-bench's too.
MAGI_RANKS, MAGI_PASSES = (8, 16, 32, 64), ("forward", "backward")
MAGI = {"tokens": 8192, "heads": 64, "dtype": "bf16"}
MAGI_KV_HEADS = 8
MAGI_METHODS = {"Ulysses": "ulysses_softmax", "Ring P2P": "ring_attention_zigzag", "Ring AllGather": "all_gather_kv_zigzag",
                "USP": "usp_zigzag", "LoongTrain": "double_ring_zigzag"}
# DeepSpeed-Ulysses, of whose model the heads are not told.
ULYSSES_RANKS, ULYSSES_TOKENS, ULYSSES_HEADS, WIDTH = (8, 16, 32, 64), 16384, 64, 128
# Products of two matrices with a triangle of tokens by tokens each, as MagiAttention counts them.
PRODUCTS = {"forward": 2, "backward": 5, "both": 7}


def section(sources):
    return Section("Softmax methods at their papers' settings", [
        Text("What others measured of softmax methods, beside one layer's attention simulated at the same ranks, tokens, "
             f"heads and types: TokenRing on `topologies/{A10}.json`, DistFlashAttention on `{A100_PAIR}` and `{A100}`, "
             f"DeepSpeed-Ulysses on `{A100}`, MagiAttention's suite on `{H100}` (LongCA-bench asks the same, and its "
             "repository prints no figures). No figure of these files is fitted to a table here but one, which is named "
             "below. A GPU that was never measured here computes attention at the best rate that was published for its "
             "kernels, and gradients at that of large products, so simulated work takes less time than measured work. "
             "What may be compared is how methods stand to one another, and how they scale."),
        token_ring_table(sources), dist_flash.iterations_table(sources), dist_flash.ulysses_table(sources),
        ulysses_table(sources), *(magi_table(sources, which) for which in MAGI_PASSES)])


def throughputs(records, ranks):
    """Returns the TFLOP/s a GPU of causal attention for each rank count."""
    found = by("ranks", (record for record in records if results.why_no_time(record) is None))
    return [cells.made_of(found.get(count), tflops, "TFLOP/s a GPU") for count in ranks]


def tflops(record):
    tokens = record["tokens"] * record["ranks"]
    pairs = tokens * (tokens + 1) / 2
    flops = PRODUCTS[record["pass"]] * 2 * pairs * record["heads"] * record["d_k"]
    return flops / record["ranks"] / record["median_seconds"] * 1e-12


def token_ring_table(sources):
    rows, sums, times = [], [], []
    for title, name in TOKEN_METHODS:
        published = having(sources.published["token_ring"], method=title)
        turns = published_cells(published, TURNS, "turn")
        if title != "TokenRing":  # whose rounds are alike
            turns = [cells.published(one) for one in having(published, turn="each")] * len(TURNS)
        sums.append(None if None in turns else total(turns))
        times.append(cells.timed(next(iter(sources.on(
            A10, bench="operator", name=name, ranks=TOKEN_RANKS, tokens=TOKEN_TOKENS, heads=TOKEN_HEADS, mode="overlapped",
            **{"pass": "forward"})), None)))
        rows += [Row(title, "published", [*turns, sums[-1], None]),
                 Row(f"`{name}`", "simulated", [None] * 4 + times[-1:])]
    rows.append(Row("Ring Attention over TokenRing", DERIVED, [None] * 3 + cells.plain(
        [cells.ratio(*sums[::-1]), cells.ratio(*times[::-1])])))
    return Table("token_ring", "TokenRing and Ring Attention on 4 A10, 24,000 tokens, forward, ms",
                 [*(f"round {turn}" for turn in TURNS), "three rounds", "whole pass"], rows, [
                     "Published: as read off a trace, approximate. The last round, and the way back of the last result, "
                     "have no published time. The rate of the links is the arithmetic of Ring Attention's round, so that "
                     "row is no test."])


def total(turns):
    value = sum(float(cell.value) for cell in turns)
    return cells.derived(value, digits(value), "ms", "sum of published rounds")


def ulysses_table(sources):
    theirs = published_cells(sources.published["ulysses_scaling"], ULYSSES_RANKS)
    ours = throughputs(sources.on(A100, bench="operator", name="ulysses_softmax", tokens=ULYSSES_TOKENS, heads=ULYSSES_HEADS,
                                  **{"pass": "both"}), ULYSSES_RANKS)
    growth, our_growth = ([cells.ratio(cell, row[0]) for cell in row] for row in (theirs, ours))
    return Table("ulysses_scaling", "DeepSpeed-Ulysses, 16K tokens a GPU, TFLOP/s a GPU",
                 [f"{ranks} GPUs" for ranks in ULYSSES_RANKS], [
                     Row("DeepSpeed-Ulysses, whole model", "published", theirs),
                     Row("`ulysses_softmax`, attention", "simulated", ours),
                     Row("over 8 GPUs", "published", growth), Row("", "simulated", our_growth)], [
                         f"Simulated: causal, {ULYSSES_HEADS} heads of {WIDTH} in bf16, forward and backward. The published "
                         "model has 1.2B parameters; its heads and how its operations are counted are not told."])


def magi_table(sources, which):
    theirs = having(sources.published["magi_h100_causal"], **{"pass": which})
    rows = []
    for title, name in MAGI_METHODS.items():
        published = published_cells(theirs, MAGI_RANKS, method=title)
        ours = throughputs((record for record in sources.on(
            H100, bench="operator", name=name, mode="overlapped", **MAGI, **{"pass": which})
            if results.kv_heads(record) == MAGI_KV_HEADS), MAGI_RANKS)
        rows += [Row(title, "published", published), Row(f"`{name}`", "simulated", ours),
                 Row("", "simulated / published", list(map(cells.ratio, ours, published)))]
    others = dict.fromkeys(row["method"] for row in theirs if row["method"] not in MAGI_METHODS)
    rows += [Row(title, "published", published_cells(theirs, MAGI_RANKS, method=title)) for title in others]
    return Table(f"magi_{which}", f"MagiAttention's suite on H100, causal, 8K tokens a GPU, {which}, TFLOP/s a GPU",
                 [f"{ranks} GPUs" for ranks in MAGI_RANKS], rows, [
                     "Their USP has groups of 8 where ours are as square as can be; their LoongTrain exchanges heads for "
                     "tokens beside its double ring. A causal mask alone: the suite's other masks have no method here.",
                     *([f"No method here: {', '.join(others)}."] if others else [])])
