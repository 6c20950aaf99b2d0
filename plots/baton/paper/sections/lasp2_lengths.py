# SPDX-License-Identifier: Apache-2.0
"""LASP-2's scaling against sequence length on 64 GPUs, with LASP-1 and Ring Attention."""

from baton import results
from baton.paper import cells
from baton.paper.cells import PUBLISHED, SIMULATED, Row, digits
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sources import A100, having, published_cells

RANKS = 64
METHODS = ("lasp2", "lasp2_as_released", "lasp1", "lasp1_as_released", "zeco", "ring_attention",
           "ring_attention_softmax")
# The paper's comparisons, and our methods for their two sides.
GAINS = (("LASP-2 vs LASP-1", (("lasp2", "lasp1"), ("lasp2_as_released", "lasp1_as_released"))),
         ("LASP-2 vs Ring Attention", (("lasp2", "ring_attention"),)))


def section(sources):
    records = [record for record in sources.on(A100, bench="operator", ranks=RANKS, **{"pass": "both"})
               if results.why_no_time(record) is None]
    throughput, gains = (having(sources.published[name], gpus=str(RANKS)) for name in ("lasp2_throughput", "lasp2_relative_speed"))
    lengths = sorted({whole(record) for record in records} | {thousands(row) for row in (*throughput, *gains)})
    speeds = {name: speeds_of(having(records, name=name), lengths) for name in METHODS}
    return Section("Sequence length: LASP-2's scaling on 64 GPUs", [
        Text("LASP-2 trains Linear-Llama3-1B on 64 A100 and reports tokens a second of the whole model; what "
             "is simulated is one layer's attention, forward and backward, 16 heads of 128 in fp32 (the ring "
             "methods have no other form), on `topologies/dgx-a100-8x8.json`. So the rows differ by what "
             "else a model does; what may be compared is how the methods stand to one another, and how that "
             "changes with the length."),
        table(throughput, sources.published["lasp2_relative_speed"], speeds, [f"{length}K" for length in lengths]),
        Figure("lasp2_lengths", "Tokens a second against sequence length, 64 GPUs",
               f"published: LASP-2's table 6; simulated, forward and backward: {A100}", "lengths",
               drawing(throughput, speeds, lengths),
               "One layer's attention simulated on 64 A100 (lines), and the whole model as LASP-2 published "
               "it (marks without a line). `ring_attention_softmax` lies on `ring_attention`.")])


def whole(record):
    """Returns the length of the whole sequence in thousands of tokens."""
    return record["tokens"] * RANKS // 1024


def thousands(row):
    return int(row["seq_len"].removesuffix("K"))


def table(throughput, gains, speeds, headings):
    rows = [Row("LASP-2, whole model", "published", published_cells(throughput, headings, "seq_len"))]
    rows += [Row(f"`{name}`", "simulated", found) for name, found in speeds.items()]
    for title, pairs in GAINS:
        rows.append(Row(title, "published, %", published_cells(gains, headings, "seq_len", method=title)))
        rows += [Row(f"`{ours}` vs `{theirs}`", "simulated / simulated − 1", list(map(gain, speeds[ours], speeds[theirs])))
                 for ours, theirs in pairs]
    return Table("lasp2_lengths", "Tokens a second by length of the whole sequence, and gains", headings, rows, [
        "OOM: out of memory, as published. The simulator has no limit of memory.",
        "A published gain is of the whole model, a simulated one of the attention alone."])


def speeds_of(records, lengths):
    found = {whole(record): record for record in records}
    return [cells.made_of(found.get(length), lambda record: record["tokens"] * RANKS / record["median_seconds"], "tokens/s", brief)
            for length in lengths]


def brief(value):
    return f"{digits(value * 1e-6)}M" if value >= 1e6 else f"{digits(value * 1e-3)}K"


def gain(one, other):
    found = cells.difference(one, other)
    if found is None:
        return None
    value = float(found.value)
    text = found.text if value < 1000 else f"{digits(1 + value / 100)}×"
    return found._replace(text=text, off=False)


def drawing(throughput, speeds, lengths):
    """[(label, name, kind, {thousands of tokens: tokens a second})]"""
    series = [(name, name, SIMULATED, cells.points(lengths, found)) for name, found in speeds.items()
              if name != "ring_attention_softmax"]
    published = {thousands(row): float(row["value"]) for row in throughput if row["value"] != "OOM"}
    return [line for line in (*series, ("LASP-2, whole model", "lasp2", PUBLISHED, published)) if line[3]]
