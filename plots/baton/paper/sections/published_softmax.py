# SPDX-License-Identifier: Apache-2.0
"""Softmax methods at the settings of the papers that measured them: published cells beside simulated ones."""

from baton import results
from baton.paper import cells
from baton.paper.cells import DERIVED, SIMULATED, Cell, Row, digits
from baton.paper.links import Links
from baton.paper.page import Section, Table, Text, told
from baton.paper.sections import dist_flash
from baton.paper.sources import A10, A100, A100_PAIR, H100, by, having, published_cells

MIX = "simulated / published"
# TokenRing's box.
TOKEN_RANKS, TOKEN_TOKENS, TOKEN_HEADS, WIDTH = 4, 6000, 32, 128
TOKEN_METHODS = (("TokenRing", "token_ring_zigzag"), ("Ring Attention", "ring_attention_zigzag"))
TURNS = ("0", "1", "2")
# MagiAttention's suite, whose settings are LongCA-bench's too.
MAGI_RANKS, MAGI_PASSES = (8, 16, 32, 64), ("forward", "backward")
MAGI = {"tokens": 8192, "heads": 64, "dtype": "bf16"}
MAGI_KV_HEADS = 8
MAGI_METHODS = {"Ulysses": "ulysses_softmax", "Ring P2P": "ring_attention_zigzag", "Ring AllGather": "all_gather_kv_zigzag",
                "USP": "usp_zigzag", "LoongTrain": "double_ring_zigzag"}
# DeepSpeed-Ulysses, of whose model the heads are not told.
ULYSSES_RANKS, ULYSSES_TOKENS, ULYSSES_HEADS = (8, 16, 32, 64), 16384, 64
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
        token_ring_table(sources), *told(lambda: token_ring_text(sources)),
        *dist_flash.blocks(sources),
        ulysses_table(sources), *told(lambda: ulysses_text(sources)),
        *(magi_table(sources, which) for which in MAGI_PASSES),
        *told(lambda: rates_text(sources), lambda: ring_text(sources), lambda: gather_text(sources))])


def throughput(record):
    """Returns the TFLOP/s a GPU of causal attention, None if the record has no time."""
    if record is None or results.why_no_time(record):
        return None
    value = tflops(record)
    return Cell(digits(value), f"{value:.6g}", "TFLOP/s a GPU", SIMULATED, cells.origin(record, ""), record["commit"],
                record["time"], cells.note(record))


def tflops(record):
    tokens = record["tokens"] * record["ranks"]
    pairs = tokens * (tokens + 1) / 2
    flops = PRODUCTS[record["pass"]] * 2 * pairs * record["heads"] * record["d_k"]
    return flops / record["ranks"] / record["median_seconds"] * 1e-12


# --- TokenRing ------------------------------------------------------------------------------------------


def token_ring_record(sources, name):
    return next(iter(sources.on(A10, bench="operator", name=name, ranks=TOKEN_RANKS, tokens=TOKEN_TOKENS,
                                heads=TOKEN_HEADS, mode="overlapped", **{"pass": "forward"})), None)


def token_ring_table(sources):
    rows, sums, times = [], [], []
    for title, name in TOKEN_METHODS:
        turns = token_ring_turns(sources, title)
        sums.append(None if None in turns else total(turns))
        times.append(cells.timed(token_ring_record(sources, name)))
        rows += [Row(title, "published", [*turns, sums[-1], None]),
                 Row(f"`{name}`", "simulated", [None] * 4 + times[-1:])]
    rows.append(Row("Ring Attention over TokenRing", DERIVED, [None] * 3 + [
        one and one._replace(off=False) for one in (cells.ratio(*sums[::-1]), cells.ratio(*times[::-1]))]))
    return Table("token_ring", "TokenRing and Ring Attention on 4 A10, 24,000 tokens, forward, ms",
                 [*(f"round {turn}" for turn in TURNS), "three rounds", "whole pass"], rows, [
                     "Published: as read off a trace, approximate. The last round, and the way back of the last result, "
                     "have no published time. The rate of the links is the arithmetic of Ring Attention's round, so that "
                     "row is no test."])


def token_ring_turns(sources, title):
    rows = having(sources.published["token_ring"], method=title)
    return published_cells(rows, TURNS, "turn") if title == "TokenRing" else [
        *map(cells.published, having(rows, turn="each"))] * len(TURNS)


def total(turns):
    value = sum(float(cell.value) for cell in turns)
    return cells.derived(value, digits(value), "ms", "sum of published rounds")


def token_ring_text(sources):
    found = {name: token_ring_record(sources, name) for _, name in TOKEN_METHODS}
    if None in found.values():
        raise KeyError(A10)
    ours, ring = (found[name] for _, name in TOKEN_METHODS)
    rows, rate = TOKEN_TOKENS * TOKEN_HEADS, Links(A10).inside
    result, queries = rows * (WIDTH + 1) * 4, rows * WIDTH * 2
    last = float(token_ring_turns(sources, "TokenRing")[-1].value)
    return ("**TokenRing.** Published rounds of TokenRing take half of Ring Attention's; simulated, its whole pass takes "
            f"{digits(ours['median_seconds'] / ring['median_seconds'])} times as long. The topology gives each rank one rate "
            f"for all that leaves it, {rate * 1e-9:.1f} GB/s, so the bytes decide, and the busiest rank sends "
            f"{ours['sent_bytes'] * 1e-6:.0f} MB against {ring['sent_bytes'] * 1e-6:.0f}: our results travel in f32, theirs "
            f"in 16 bits. The last of them, {result * 1e-6:.0f} MB, also has no work to hide its {digits(result / rate * 1e3)} "
            "ms, and the published rounds end before it. And the published box sends faster than that rate when messages go "
            f"two ways: in round 2 rank 0 sends results of {queries * 1e-6:.0f} MB and half as many queries in {last:g} ms, "
            f"{1.5 * queries / last * 1e-6:.0f} GB/s. This is the gain that the paper is about. It needs a rate for each "
            "pair of GPUs, which nobody published for this box and the simulator does not have.")


# --- DeepSpeed-Ulysses ----------------------------------------------------------------------------------


def ulysses_records(sources):
    return by("ranks", (record for record in sources.on(A100, bench="operator", name="ulysses_softmax",
                                                        tokens=ULYSSES_TOKENS, heads=ULYSSES_HEADS, **{"pass": "both"})
                        if results.why_no_time(record) is None))


def ulysses_rows(sources):
    """Returns the published and the simulated cells, and those of both over their first."""
    theirs = published_cells(sources.published["ulysses_scaling"], ULYSSES_RANKS)
    found = ulysses_records(sources)
    ours = [throughput(found.get(ranks)) for ranks in ULYSSES_RANKS]
    return theirs, ours, *([cells.ratio(cell, row[0]) for cell in row] for row in (theirs, ours))


def ulysses_table(sources):
    theirs, ours, growth, our_growth = ulysses_rows(sources)
    return Table("ulysses_scaling", "DeepSpeed-Ulysses, 16K tokens a GPU, TFLOP/s a GPU",
                 [f"{ranks} GPUs" for ranks in ULYSSES_RANKS], [
                     Row("DeepSpeed-Ulysses, whole model", "published", theirs),
                     Row("`ulysses_softmax`, attention", "simulated", ours),
                     Row("over 8 GPUs", "published", growth), Row("", "simulated", our_growth)], [
                         f"Simulated: causal, {ULYSSES_HEADS} heads of {WIDTH} in bf16, forward and backward. The published "
                         "model has 1.2B parameters; its heads and how its operations are counted are not told."])


def ulysses_text(sources):
    _, ours, growth, our_growth = ulysses_rows(sources)
    if None in ours:
        raise KeyError(A100)
    low, high = (100 * edge([float(cell.value) for row in (growth, our_growth) for cell in row]) - 100
                 for edge in (min, max))
    return ("**DeepSpeed-Ulysses.** The sizes of the two cannot be compared: one is a whole model on GPUs of 40 GB, which "
            "may compute its forward pass twice, the other attention alone at the best published rate. What can be compared "
            f"is how they scale: with tokens and GPUs doubled together both stay within {cells.signed(low)} and "
            f"{cells.signed(high)} of their own rate on 8 GPUs, because work grows with the square of the tokens and the "
            "all-to-alls do not.")


# --- MagiAttention's suite ------------------------------------------------------------------------------


def magi_records(sources, name, which):
    return by("ranks", (record for record in sources.on(H100, bench="operator", name=name, mode="overlapped", **MAGI,
                                                        **{"pass": which})
                        if results.kv_heads(record) == MAGI_KV_HEADS and results.why_no_time(record) is None))


def magi_table(sources, which):
    theirs = having(sources.published["magi_h100_causal"], **{"pass": which})
    rows = []
    for title, name in MAGI_METHODS.items():
        found = magi_records(sources, name, which)
        published = published_cells(theirs, MAGI_RANKS, method=title)
        ours = [throughput(found.get(ranks)) for ranks in MAGI_RANKS]
        rows += [Row(title, "published", published), Row(f"`{name}`", "simulated", ours),
                 Row("", MIX, list(map(cells.ratio, ours, published)))]
    others = dict.fromkeys(row["method"] for row in theirs if row["method"] not in MAGI_METHODS)
    rows += [Row(title, "published", published_cells(theirs, MAGI_RANKS, method=title)) for title in others]
    return Table(f"magi_{which}", f"MagiAttention's suite on H100, causal, 8K tokens a GPU, {which}, TFLOP/s a GPU",
                 [f"{ranks} GPUs" for ranks in MAGI_RANKS], rows, [
                     "Their USP has groups of 8 where ours are as square as can be; their LoongTrain exchanges heads for "
                     "tokens beside its double ring. A causal mask alone: the suite's other masks have no method here.",
                     *([f"No method here: {', '.join(others)}."] if others else [])])


def magi_rates(sources, which, ranks):
    """Returns {title: (published, simulated)} in TFLOP/s a GPU. Throws KeyError without them."""
    theirs = having(sources.published["magi_h100_causal"], gpus=str(ranks), **{"pass": which})
    published = {row["method"]: float(row["value"]) for row in theirs}
    return {title: (published[title], tflops(magi_records(sources, name, which)[ranks]))
            for title, name in MAGI_METHODS.items()}


def below(rates, title):
    """Returns how far a method's rates, published and simulated, are below Ulysses's, in percent."""
    return [100 * (1 - rates[title][side] / rates["Ulysses"][side]) for side in (0, 1)]


def rates_text(sources):
    rates = {which: magi_rates(sources, which, MAGI_RANKS[0])["Ulysses"] for which in MAGI_PASSES}
    ratios = {which: digits(ours / theirs) for which, (theirs, ours) in rates.items()}
    return ("**MagiAttention's suite: rates.** Ulysses computes in one large kernel, so it shows the kernels' rate: ours is "
            f"{ratios['forward']} times theirs forward on {MAGI_RANKS[0]} GPUs, {ratios['backward']} times backward. The "
            "topology has the best rate that FlashAttention-3 published, of any shape and mask, and for gradients that of "
            "large products, since no rate of theirs is in it.")


def ring_text(sources):
    ranks = MAGI_RANKS[0]
    rates = magi_rates(sources, "forward", ranks)
    theirs, ours = below(rates, "Ring P2P")
    tensors = 2 * MAGI["tokens"] * MAGI_KV_HEADS * WIDTH * 2
    work = magi_records(sources, "ring_attention_zigzag", "forward")[ranks]["median_seconds"] / ranks
    return (f"**Ring P2P.** On {ranks} GPUs of one node the published ring is {theirs:.0f} % below Ulysses, ours "
            f"{ours:.0f} %. Messages cannot be the reason: keys and values of a rank are {tensors * 1e-6:.1f} MB, "
            f"{digits(tensors / Links(H100).inside * 1e3)} ms of NVLink under {digits(work * 1e3)} ms of work in every "
            "hop. What is left is work in small blocks, which does not reach the rate of one large kernel, and what a host "
            "adds between them. The simulator has one rate for blocks of any size, and counts the merges alone.")


def gather_text(sources):
    ranks, links = MAGI_RANKS[-1], Links(H100)
    rates = magi_rates(sources, "backward", ranks)
    theirs, ours = below(rates, "Ring AllGather")
    tensors = 2 * MAGI["tokens"] * MAGI_KV_HEADS * WIDTH * 2
    # Backward keys and values are gathered again, and their gradients are scattered in f32, twice their bytes.
    one, all_cards = (3e3 * seconds(ranks, tensors) for seconds in (links.one_card_seconds, links.gather_seconds))
    return (f"**Ring AllGather.** Backward on {ranks} GPUs it is {theirs:.0f} % below Ulysses as published, "
            f"{ours:.0f} % as simulated. Our gather of keys and values, and the reduce-scatter of their gradients in f32, are "
            f"rings in the order of ranks, which cross each border of nodes on one card: {digits(one)} ms, where all cards of "
            f"a node together need {digits(all_cards)} ms. NCCL spreads rings over the cards.")
