# SPDX-License-Identifier: Apache-2.0
"""What the papers' abstracts claim, as published, as simulated, and as measured at the ranks that were there, and what
decides each claim."""

from baton import operators, results
from baton.paper import cells
from baton.paper.cells import Row, digits
from baton.paper.page import Section, Table, told
from baton.paper.sections import zeco_operators, zeco_throughput
from baton.paper.sections.lasp2_throughput import MODEL as LASP2_MODEL
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import A100, H100, having

COLUMNS = ("published", "simulated", "measured")
LASP2_METHODS, LASP2_RANKS, LASP2_TOKENS = ("lasp2", "lasp1", "ring_attention"), 64, 32768  # 2048K tokens in all
MANY, MILLION = 256, 64
PASS = zeco_operators.AGAINST


def section(sources):
    claims = [claim(sources) for claim in (lasp1, ring, scan, operator, model, million)]
    rows = [Row(title, where, [published, ours, here]) for title, where, published, ours, here, _ in claims]
    return Section("What the papers claim", [
        Table("headlines", "The claims of the papers' abstracts, published, simulated and measured", list(COLUMNS), rows, [
            "A gain is how much more throughput the first method has than the second; n times is a ratio of times.",
            "Simulated: on the papers' GPUs and ranks, on links with a source for every figure. Measured: the most ranks that "
            "a machine here had, whose number and size stand in the cell; blank where nothing was measured."]),
        *told(*(sentence for *_, sentence in claims))])


def claimed(sources, name, method, **wanted):
    """Returns the published cell of a claim, with the unit in its text. None if it is not there."""
    for row in having(sources.published.get(name, []), method=method, **wanted):
        cell = cells.published(row)
        return cell._replace(text=f"{cell.text} %" if "%" in cell.unit else f"{cell.text}×")
    return None


def times(records):
    return {record["name"]: record["median_seconds"] for record in records if results.why_no_time(record) is None}


def gain(found, better, worse, where=""):
    """Returns the cell of the throughput of `better` over that of `worse` in {method: seconds}: a gain in percent, or the ratio
    if it is ten times and more. None without both."""
    if not {better, worse} <= found.keys():
        return None
    ratio = found[worse] / found[better]
    value = 100 * (ratio - 1)
    text = cells.signed(value) if ratio < 10 else f"{digits(ratio)}×"
    return cells.derived(value, text + where, "%", f"time of {worse} / time of {better} - 1")


def factor(found, slow, fast, where=""):
    """Returns the cell of time over time. None without both."""
    if not {slow, fast} <= found.keys():
        return None
    value = found[slow] / found[fast]
    return cells.derived(value, f"{digits(value)}×{where}", "", f"time of {slow} / time of {fast}")


def measured(sources, make, wanted, slow, fast):
    """Returns the cell of the most ranks, and then of the most tokens, that measured both methods in one launch."""
    found = []
    for (machine, executor, cadence), records in sources.here(**wanted):
        whole = [one for one in records if one["bench"] == "collective" or operators.stands_for_its_method(one)]
        for contest, run in {(one["contest"], one["run"]) for one in whole if one["ranks"] > 1 and cadence == "isolated"}:
            of_launch = having(whole, contest=contest, run=run)
            cell, one = make(times(of_launch), slow, fast), of_launch[0]
            if cell:
                found.append((one["ranks"], one["tokens"], one["time"], machine, executor, cell))
    if not found:
        return None
    ranks, tokens, _, machine, executor, cell = max(found, key=lambda one: one[:3])
    size = "" if wanted["bench"] == "collective" else f", {tokens:,} tokens a rank"
    return cell._replace(text=f"{cell.text} ({ranks} ranks of {machine}, {executor}{size})")


# --- The claims -----------------------------------------------------------------------------------------

LAYER = {"bench": "operator", "pass": PASS, "attention": "linear"}


def lasp2_model(sources):
    return times(record for record in sources.on(
        A100, bench="model", model=LASP2_MODEL, line="full", ranks=LASP2_RANKS, tokens=LASP2_TOKENS))


def lasp1(sources):
    found = lasp2_model(sources)
    ours = gain(found, "lasp2", "lasp1")
    return ("LASP-2 over LASP-1", "2048K tokens on 64 GPUs", claimed(
        sources, "lasp2_relative_speed", "LASP-2 vs LASP-1", seq_len="2048K"), ours,
            measured(sources, gain, LAYER, "lasp2", "lasp1"),
            lambda: (f"**LASP-2 over LASP-1** is decided by whether a rank computes while it waits: in the published order both do, "
                     f"and a step of {digits(found['lasp2'])} s hides nearly all of either exchange ({cells.signed(float(ours.value))}). "
                     "Only a chain of whole layers, as released, gives LASP-2 a lead that grows with the length.")
            if ours else missing())


def ring(sources):
    found = lasp2_model(sources)
    ours = gain(found, "lasp2", "ring_attention")
    return ("LASP-2 over Ring Attention", "2048K tokens on 64 GPUs", claimed(
        sources, "lasp2_relative_speed", "LASP-2 vs Ring Attention", seq_len="2048K"), ours,
            measured(sources, gain, LAYER, "lasp2", "ring_attention"),
            lambda: ("**LASP-2 over Ring Attention** is decided by the right product: without it every rank works on the keys and "
                     "values of all, so work and traffic grow with the whole sequence, and the gain that is simulated "
                     f"({ours.text}) is far above the published one, whose baseline must have done less.")
            if ours else missing())


def scan(sources):
    found = times(sources.on(H100, bench="collective", ranks=MANY, **SHAPE))
    few = times(sources.on(H100, bench="collective", ranks=8, **SHAPE))
    ours = factor(found, "ring_all_gather", "all_scan")
    return ("All-Scan over all-gather", f"{MANY} GPUs, table 2", claimed(
        sources, "zeco_headlines", "All-Scan vs all-gather"), ours,
            measured(sources, factor, {"bench": "collective", **SHAPE}, "all_gather_scan", "all_scan"),
            lambda: ("**All-Scan over all-gather** is decided by bytes against hops: a gather moves the states of all ranks through "
                     "every card, and a chain one state over as many hops as there are ranks, so the ratio is that of a card's "
                     f"rate to a hop's latency: {digits(few['ring_all_gather'] / few['all_scan'])} on 8 GPUs of one node, "
                     f"{digits(float(ours.value))} on {MANY}.") if ours else missing())


def operator(sources):
    on_many = [record for tokens in zeco_operators.TOKENS for method in ("zeco", "lasp1", "lasp2", "lasp1_as_released",
                                                                       "lasp2_as_released", "local")
               for record in zeco_operators.simulated_records(sources, method, tokens, PASS) if record["ranks"] == MANY]
    found = {tokens: times(having(on_many, tokens=tokens)) for tokens in zeco_operators.TOKENS}
    rivals = {(name, tokens): cell for tokens, of in found.items() for name in ("lasp1", "lasp2")
              if (cell := factor(of, name, "zeco"))}
    best = max(rivals, key=lambda one: float(rivals[one].value), default=None)
    paper = {(row["method"], row["gpus"]): float(row["value"]) for row in sources.published.get("zeco_table_operator_16k", [])}

    def decides():
        of = found[zeco_operators.TOKENS[0]]
        return ("**ZeCO's operator** is decided by which form of LASP ran and by what the layer can hide: the paper's cells have "
                f"{digits(paper['LASP-1', '128'] / paper['ZeCO', '128'])} times for LASP-1 and "
                f"{digits(paper['LASP-2', '128'] / paper['ZeCO', '128'])} for LASP-2 on 128 GPUs. On {MANY} GPUs LASP-2 is "
                f"simulated at {digits(of['lasp2'] / of['zeco'])} times ZeCO's time in its published order and "
                f"{digits(of['lasp2_as_released'] / of['zeco'])} as released, LASP-1 at {digits(of['lasp1'] / of['zeco'])} and "
                f"{digits(of['lasp1_as_released'] / of['zeco'])}.")

    return ("ZeCO's operator, at most", f"up to {MANY} GPUs, tables 3 and 4", claimed(sources, "zeco_headlines", "Operator"),
            best and rivals[best]._replace(text=f"{rivals[best].text} (over `{best[0]}`, {best[1] // 1024}K tokens)"),
            measured(sources, factor, LAYER | {"heads": zeco_operators.HEADS}, "lasp2", "zeco"), decides)


def model(sources):
    found = times(record for record in zeco_throughput.sharded(sources, zeco_throughput.TOKENS) if record["ranks"] == MANY)
    ours = gain(found, "zeco", "lasp2")
    return ("ZeCO over LASP-2, model", f"{MANY} GPUs, 8M tokens, table 6", claimed(
        sources, "zeco_headlines", "Model throughput vs LASP-2"), ours,
            measured(sources, gain, {"bench": "model", "line": "full", "model": zeco_throughput.MODEL}, "zeco", "lasp2"),
            lambda: ("**ZeCO over LASP-2 in a model** is decided by what of LASP-2's gather a layer leaves exposed: "
                     f"{digits(1e3 * (found['lasp2'] - found['local']))} ms of a step of {digits(1e3 * found['lasp2'])} ms are "
                     "simulated, and the published gain needs a gather that nothing hides, on links as slow as table 2's.")
            if ours else missing())


def million(sources):
    on_many = [record for method in ("zeco", "local") for record in zeco_operators.simulated_records(
        sources, method, zeco_operators.TOKENS[0], PASS) if record["ranks"] == MILLION]
    found = times(on_many)
    ours = factor(found, "zeco", "local")
    paper = {(row["method"], row["gpus"]): float(row["value"]) for row in sources.published.get("zeco_table_operator_16k", [])}

    def decides():
        low, high = (paper["ZeCO", ranks] / paper["GLA baseline (DP)", ranks] for ranks in ("32", "128"))
        return ("**1M tokens in the time of 16K** is decided by the chain's length against one layer: its hops grow with the ranks "
                f"and the layer does not. Simulated ZeCO takes {digits(float(ours.value))} times GLA alone on {MILLION} GPUs; the "
                f"paper's own cells have {low:.2f} times on 32 and {high:.2f} on 128, so about the same is between these.")

    return ("1M tokens on 64 GPUs over 16K on one", "operator, 16K tokens a GPU", claimed(
        sources, "zeco_headlines", "1M tokens on 64 devices vs 16K on one"), ours,
            measured(sources, factor, LAYER, "zeco", "local"), decides if ours else missing)


def missing():
    raise KeyError("not simulated")
