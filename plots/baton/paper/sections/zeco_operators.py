# SPDX-License-Identifier: Apache-2.0
"""ZeCO's tables 3 and 4: one layer of gated linear attention under each method, published, simulated and measured here."""

from baton import operators
from baton.checks import PASSES
from baton.paper import cells, local_measurements, settings
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections.zeco_table2 import ratios
from baton.paper.sources import H100, LOCAL, PAPER_RANKS, having, published_cells, timed_cells

ASKED = {number: settings.flags(settings.table(number)) for number in (3, 4)}
TABLES = {flags["tokens"]: number for number, flags in ASKED.items()}
TOKENS = tuple(TABLES)
FEW_RANKS = (2, 4)  # simulated too, beside the measurements of machines at hand
HEADS = ASKED[3]["heads"]
DTYPE = "bf16"  # of the tensors; it selects the form of the kernels that GPUs run
METHODS = (operators.LOCAL, "zeco", "lasp2", "lasp1", "lasp2_as_released", "lasp1_as_released")
PUBLISHED = {16384: "zeco_table_operator_16k"}
# The pass that a published cell is compared with, since the paper does not say which it timed.
AGAINST = "both"


def section(sources):
    return Section("Operators: ZeCO's tables 3 and 4", [
        Text("One layer of gated linear attention, 16 heads of 128, forward, backward and both, under each "
             "method. `local` is GLA alone, the data-parallel line. As published, LASP-1 and LASP-2 compute "
             "beside their exchange; as released (`_as_released`), they wait: LASP-1 receives before it "
             "computes anything, so the ranks' whole layers stand in a row; LASP-2 gathers at once. Tensors "
             "are bf16 and states fp32, as GPUs run them here. The simulated device runs this suite's own kernels at "
             "the rates that they were measured to have on an H200 (`kernels` in the topology); its exchange is on "
             "the links of the topology."),
        *(table(sources, tokens) for tokens in TOKENS),
        Figure("operator_bars", "Operator time of one layer, as in ZeCO's figure 1",
               f"16K tokens a GPU; published: pass not stated; simulated, both passes: {H100}", "operator_bars",
               bars(sources),
               "Published times of the operator (hatched, the pass is not stated) and simulated ones, "
               "forward and backward, of the released and the published forms, at 16K tokens a GPU; the "
               "scale is logarithmic.")])


def table(sources, tokens):
    mine = list(local_measurements.groups(sources, tokens, bench="operator", heads=HEADS, rounds=ASKED[TABLES[tokens]]["rounds"]))
    columns = sorted({*FEW_RANKS, *PAPER_RANKS, *(record["ranks"] for _, records in mine for record in records)})
    rows = [row for method in METHODS for row in method_rows(sources, method, tokens, columns, mine)]
    return Table(f"operator_{tokens // 1024}k",
                 f"Table {TABLES[tokens]}: {tokens // 1024}K tokens a GPU, published and simulated, ms",
                 [str(ranks) for ranks in columns], rows, list(notes(tokens)))


def notes(tokens):
    yield "The pass both is forward and then backward, as one round; nothing here is a sum of cells."
    if tokens in PUBLISHED:
        yield ("Published cells are means. Whether forward, backward or their sum, and which form of LASP-1 and LASP-2 ran, "
               f"is not known; the ratio is that of {AGAINST} and of the form that the method's own paper "
               "describes. 16, 64 and 256 GPUs were in no source.")
    else:
        yield "Nobody whom we could read published a cell of this size."


def method_rows(sources, method, tokens, columns, mine):
    label = f"`{method}`"
    published = published_row(sources, method, tokens, columns)
    if any(published):
        yield Row(f"{operators.TITLES[method]} (paper)", "published", published)
    for which in PASSES:
        simulated = timed_cells(simulated_records(sources, method, tokens, which), columns)
        yield Row(label if which == PASSES[0] else "", f"simulated, {which}", simulated)
        if which == AGAINST and any(published):
            yield Row("", "simulated / published", ratios(simulated, published))
        for told_of, records in mine:
            for mode in ("overlapped", "compute_only"):
                cut = "" if mode == "overlapped" or method == operators.LOCAL else ", without its exchange"
                yield Row("", f"{told_of}, {which}{cut}", timed_cells(having(
                    records, name=method, mode=mode, **{"pass": which}), columns, LOCAL))


def published_row(sources, method, tokens, columns):
    rows = sources.published.get(PUBLISHED.get(tokens), [])
    return published_cells(rows, columns, method=operators.TITLES.get(method))


def simulated_records(sources, method, tokens, which):
    return sources.on(H100, name=method, tokens=tokens, heads=HEADS, dtype=DTYPE, **{"pass": which})


def bars(sources):
    """[(label, name, kind, {ranks: ms})] at 16K tokens."""
    rows = [(operators.TITLES[method], method, cells.PUBLISHED, published_row(sources, method, TOKENS[0], PAPER_RANKS))
            for method in METHODS[:4]]
    rows += [(method, method, cells.SIMULATED, timed_cells(simulated_records(sources, method, TOKENS[0], AGAINST), PAPER_RANKS))
             for method in METHODS]
    return [(*which, cells.points(PAPER_RANKS, row)) for *which, row in rows if any(row)]
