# SPDX-License-Identifier: Apache-2.0
"""LASP-2's scaling against sequence length on 64 GPUs, with LASP-1 and Ring Attention."""

from baton import results
from baton.paper import cells
from baton.paper.cells import PUBLISHED, SIMULATED, Cell, Row, digits, signed
from baton.paper.links import Links
from baton.paper.page import Figure, Section, Table, Text, told
from baton.paper.sources import A100, having, published_cells

RANKS = 64
METHODS = ("lasp2", "lasp2_as_released", "lasp1", "lasp1_as_released", "zeco", "ring_attention",
           "ring_attention_softmax")
# The paper's comparisons, and our methods for their two sides.
GAINS = (("LASP-2 vs LASP-1", (("lasp2", "lasp1"), ("lasp2_as_released", "lasp1_as_released"))),
         ("LASP-2 vs Ring Attention", (("lasp2", "ring_attention"),)))


def section(sources):
    lengths = columns(sources)
    return Section("Sequence length: LASP-2's scaling on 64 GPUs", [
        Text("LASP-2 trains Linear-Llama3-1B on 64 A100 and reports tokens a second of the whole model; what "
             "is simulated is one layer's attention, forward and backward, 16 heads of 128 in fp32 (the ring "
             "methods have no other form), on `topologies/dgx-a100-8x8.json`. So the rows differ by what "
             "else a model does; what may be compared is how the methods stand to one another, and how that "
             "changes with the length."),
        table(sources, lengths),
        *arithmetic(sources),
        Figure("lasp2_lengths", "Tokens a second against sequence length, 64 GPUs",
               f"published: LASP-2's table 6; simulated, forward and backward: {A100}", "lengths",
               drawing(sources, lengths),
               "One layer's attention simulated on 64 A100 (lines), and the whole model as LASP-2 published "
               "it (marks without a line). `ring_attention_softmax` lies on `ring_attention`.")])


def columns(sources):
    """Returns the lengths of the whole sequence, simulated or published, in thousands of tokens."""
    simulated = {record["tokens"] * RANKS // 1024 for record in of(sources)}
    published = {thousands(row) for name in ("lasp2_throughput", "lasp2_relative_speed")
                 for row in having(sources.published[name], gpus=str(RANKS))}
    return sorted(simulated | published)


def thousands(row):
    return int(row["seq_len"].removesuffix("K"))


def of(sources, **wanted):
    return [record for record in sources.on(A100, bench="operator", ranks=RANKS, **{"pass": "both"}, **wanted)
            if results.why_no_time(record) is None]


# --- The table ------------------------------------------------------------------------------------------


def table(sources, lengths):
    headings = [f"{length}K" for length in lengths]
    published = published_cells(sources.published["lasp2_throughput"], headings, "seq_len",
                                              gpus=str(RANKS))
    rows = [Row("LASP-2, whole model", "published", published)]
    rows += [Row(f"`{name}`", "simulated", speeds(sources, name, lengths))
             for name in METHODS]
    rows += [row for title, pairs in GAINS for row in gain_rows(sources, title, pairs, lengths)]
    return Table("lasp2_lengths", "Tokens a second by length of the whole sequence, and gains", headings, rows, [
        "OOM: out of memory, as published. The simulator has no limit of memory.",
        "A published gain is of the whole model, a simulated one of the attention alone."])


def speeds(sources, name, lengths):
    found = {record["tokens"] * RANKS // 1024: record for record in of(sources, name=name)}
    return [speed(found.get(length)) for length in lengths]


def speed(record):
    if record is None:
        return None
    value = record["tokens"] * RANKS / record["median_seconds"]
    return Cell(brief(value), f"{value:.6g}", "tokens/s", SIMULATED, cells.origin(record, ""), record["commit"],
                record["time"], cells.note(record))


def brief(value):
    return f"{digits(value * 1e-6)}M" if value >= 1e6 else f"{digits(value * 1e-3)}K"


def gain_rows(sources, title, pairs, lengths):
    published = published_cells(sources.published["lasp2_relative_speed"],
                                              [f"{length}K" for length in lengths], "seq_len", method=title)
    yield Row(title, "published, %", published)
    for ours, theirs in pairs:
        rows = (speeds(sources, name, lengths) for name in (ours, theirs))
        yield Row(f"`{ours}` vs `{theirs}`", "simulated / simulated − 1", [gain(*pair) for pair in zip(*rows)])


def gain(one, other):
    found = cells.difference(one, other)
    if found is None:
        return None
    value = float(found.value)
    text = found.text if value < 1000 else f"{digits(1 + value / 100)}×"
    return found._replace(text=text, off=False)


# --- The arithmetic -------------------------------------------------------------------------------------


def arithmetic(sources):
    gains = {(row["method"], thousands(row)): float(row["value"])
             for row in sources.published["lasp2_relative_speed"]}
    tokens = {thousands(row): row["value"] for row in having(sources.published["lasp2_throughput"], gpus=str(RANKS))}
    milliseconds = {(record["name"], record["tokens"] * RANKS // 1024): record["median_seconds"] * 1e3
                    for record in of(sources)}
    short, long = 512, 2048
    yield from told(lambda: lasp1_text(gains, milliseconds, step(tokens, short), short, long),
                    lambda: ring_text(gains, milliseconds, step(tokens, short), short))
    if tokens.get(long) == "OOM":
        yield Text("Two of the paper's own figures do not meet: its table 6 has LASP-2 out of memory at "
                   f"{long}K on {RANKS} GPUs, where the text claims gains of "
                   f"{gains['LASP-2 vs LASP-1', long]} and {gains['LASP-2 vs Ring Attention', long]} %.")


def step(tokens, length):
    """Returns the seconds of a published step of the whole model."""
    return length * 1024 / float(tokens[length])


def lasp1_text(gains, times, seconds, short, long):
    title = "LASP-2 vs LASP-1"
    waits = times["lasp1_as_released", short] - times["lasp2", short]
    chain = 100 * (times["lasp1", short] / times["lasp2", short] - 1)
    return (f"**LASP-1.** The published gain grows with the length, {gains[title, short]} % at {short}K and "
            f"{gains[title, long]} % at {long}K. A state's exchange does not grow with it and local work "
            "does, so a gain of the exchange alone can but shrink, as `lasp1` against `lasp2` does here. "
            "What grows is a chain of whole layers, `lasp1_as_released`, and that is another size: at "
            f"{short}K a published step takes {digits(seconds)} s, {gains[title, short]} % of it are "
            f"{digits(seconds * gains[title, short] / 100)} s over all layers, and one layer of LASP-1 as "
            f"released would add {digits(waits * 1e-3)} s to LASP-2's; one in the published order differs "
            f"from it by {signed(chain)}. In simulation LASP-2's ring gather through one card a node "
            "boundary is slower than the chain while there is little to hide it under.")


def ring_text(gains, times, seconds, short):
    title = "LASP-2 vs Ring Attention"
    ring = times["ring_attention", short] * 1e-3
    theirs = seconds * (1 + gains[title, short] / 100)
    return (f"**Ring Attention.** At {short}K a published step of the whole model takes {digits(theirs)} s "
            f"with it. One layer of ours takes {digits(ring)} s, for the keys and values of {RANKS} ranks in "
            f"fp32 pass one card of {Links(A100).card * 1e-9:.0f} GB/s at every border of nodes, three times "
            "with the gradients' way back. So the published baseline moved fewer bytes, bf16 or fewer heads "
            "of keys, or through several cards; the paper does not say. Both have no right product, so their "
            "work is quadratic in the length.")


def drawing(sources, lengths):
    """[(label, name, kind, {thousands of tokens: tokens a second})]"""
    series = [(name, name, SIMULATED, {length: float(cell.value) for length, cell in zip(
        lengths, speeds(sources, name, lengths)) if cell}) for name in METHODS if name != "ring_attention_softmax"]
    published = {thousands(row): float(row["value"]) for row in having(
        sources.published["lasp2_throughput"], gpus=str(RANKS)) if row["value"] != "OOM"}
    return [line for line in (*series, ("LASP-2, whole model", "lasp2", PUBLISHED, published)) if line[3]]
