# SPDX-License-Identifier: Apache-2.0
"""ZeCO's tables 3 and 4: one layer's attention under each method, published, simulated and measured."""

import collections

from baton import estimates, operators
from baton.checks import PASSES
from baton.paper import cells, local_measurements, settings
from baton.paper.cells import Row
from baton.paper.page import Figure, Section, Table, Text
from baton.paper.sections.zeco_table2 import ratios
from baton.paper.sources import H100, LOCAL, PAPER_RANKS, having, published_cells, timed_cells, where_measured
from baton.peers.kernels import MOST_ERROR

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
HOW = ("on a host with GPUs: `mpirun -n 4 build/cuda/bin/operator_bench --executor peer,nccl --methods "
       "zeco,lasp2,lasp1,local --dtype bf16 --tokens 16384,32768 --heads 16 --pass all --mode all --ranks 2,4 "
       "-J results/NAME/operator.jsonl`")
HOW_PEERS = "`./run peers --out results/NAME` measures one"


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
               "scale is logarithmic."),
        *(block for tokens in TOKENS for block in measured_tables(sources, tokens))])


# --- The tables -----------------------------------------------------------------------------------------


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


def measured_tables(sources, tokens):
    """Yields a table of linear methods and one of softmax methods, or a word on how to measure them."""
    machines = [(key, stood(records)) for key, records in sources.here(bench="operator", tokens=tokens, heads=HEADS)]
    peers = peers_of(sources, tokens)
    if not machines:
        yield Text(f"No machine here has measured a layer of {tokens // 1024}K tokens yet; {HOW}.")
    if not peers:
        yield Text(f"No other project's kernel has been measured at {tokens // 1024}K tokens; {HOW_PEERS}.")
    for name, attention in (("", "linear"), ("_softmax", "softmax")):
        wanted = [(key, of) for key, records in machines
                  if (of := [one for one in records if one["attention"] == attention])]
        columns = sorted({one["ranks"] for _, records in wanted for one in records} | ({1} if peers and not name else set()))
        rows = [*measured_rows(wanted, columns), *(peer_rows(peers, columns) if not name else [])]
        if rows:
            yield Table(f"operator_{tokens // 1024}k_measured{name}",
                        f"{tokens // 1024}K tokens a GPU, measured, {'softmax' if name else 'linear'} methods, ms",
                        [str(ranks) for ranks in columns], rows, ["Medians. Ranks in the head of each column."])


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


def peers_of(sources, tokens, heads=HEADS, attention="linear", ranks=1):
    """Returns {(machine, name): {pass: row}} of other projects' kernels on so many GPUs that are right, each row the last of
    its launches with the estimate of all. Rows of before 2026-11-26 name no layer; those of softmax attention have a mask."""
    found = collections.defaultdict(list)
    for machine, rows in sources.peers.items():
        for row in having(rows, tokens=tokens, heads=heads, dtype=DTYPE):
            layer = row.get("attention", "softmax" if "mask" in row else "linear")
            if layer == attention and row.get("mask", "causal") == "causal" and row.get("ranks", 1) == ranks \
                    and row.get("error", 0) <= MOST_ERROR:
                found[machine, f"{row['peer']} `{row['kernel']}`", row["pass"]].append(row)
    passes = collections.defaultdict(dict)
    for (machine, name, which), of_launches in found.items():
        passes[machine, name][which] = {**of_launches[-1], "median_seconds": estimates.mean(
            row["median_seconds"] for row in of_launches)}
    return dict(passes)


def peer_rows(peers, columns):
    for (machine, name), passes in peers.items():
        for number, which in enumerate(filter(passes.get, PASSES)):
            row = passes[which]
            yield Row("" if number else name, f"measured, {machine}, {which}", [
                cells.peer(row, machine) if ranks == 1 else None for ranks in columns])


def published_row(sources, method, tokens, columns):
    rows = sources.published.get(PUBLISHED.get(tokens), [])
    return published_cells(rows, columns, method=operators.TITLES.get(method))


def simulated_records(sources, method, tokens, which):
    return sources.on(H100, name=method, tokens=tokens, heads=HEADS, dtype=DTYPE, **{"pass": which})


def stood(records):
    return [record for record in records if operators.stands_for_its_method(record)]


def measured_rows(machines, columns):
    """Yields the rows of every machine, executor, method and pass."""
    for (machine, executor, cadence), records in machines:
        where = where_measured(machine, executor, cadence)
        for row, label in operators.labels({operators.row(record) for record in records}).items():
            of_row = [record for record in records if operators.row(record) == row]
            for number, (dtype, which) in enumerate(kinds(of_row)):
                shown = [one for one in of_row if (one["dtype"], one["pass"]) == (dtype, which)]
                told = f"measured, {where}, {which}" + (f", {dtype}" if dtype != DTYPE else "")
                yield Row("" if number else f"`{label}`", told, timed_cells(shown, columns, machine))


def kinds(records):
    """Returns the [(dtype, pass)] of the records, passes in the order in which they run."""
    found = {(record["dtype"], record["pass"]) for record in records}
    return sorted(found, key=lambda kind: (kind[0], PASSES.index(kind[1])))


def bars(sources):
    """[(label, name, kind, {ranks: ms})] at 16K tokens."""
    series = []
    for method in (operators.LOCAL, "zeco", "lasp2", "lasp1"):
        published = published_row(sources, method, TOKENS[0], PAPER_RANKS)
        series.append((operators.TITLES[method], method, "published", values(published)))
    for method in METHODS:
        simulated = timed_cells(simulated_records(sources, method, TOKENS[0], AGAINST), PAPER_RANKS)
        series.append((method, method, "simulated", values(simulated)))
    return [one for one in series if one[3]]


def values(row):
    return {ranks: float(cell.value) for ranks, cell in zip(PAPER_RANKS, row) if cell}
