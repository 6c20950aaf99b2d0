# SPDX-License-Identifier: Apache-2.0
"""What the papers' abstracts claim, as published, as simulated, and as measured at the ranks that were there."""

from baton import operators, results
from baton.paper import cells
from baton.paper.cells import Row, digits
from baton.paper.page import Section, Table
from baton.paper.sections import zeco_operators, zeco_throughput
from baton.paper.sections.lasp2_throughput import MODEL as LASP2_MODEL
from baton.paper.sections.zeco_table2 import SHAPE
from baton.paper.sources import A100, H100, having

COLUMNS = ("published", "simulated", "measured")
LASP2_METHODS, LASP2_RANKS, LASP2_TOKENS = ("lasp2", "lasp1", "ring_attention"), 64, 32768  # 2048K tokens in all
MANY = 256
PASS = zeco_operators.AGAINST


def section(sources):
    return Section("What the papers claim", [
        Table("headlines", "The claims of the papers' abstracts, published, simulated and measured", list(COLUMNS),
              list(claims(sources)), [
            "A gain is how much more throughput the first method has than the second; n times is a ratio of times.",
            "Simulated: on the papers' GPUs and ranks, on links with a source for every figure. Measured: the most ranks that "
            "a machine here had, whose number and size stand in the cell; blank where nothing was measured."])])


def claimed(sources, name, method, **wanted):
    """Returns the published cell of a claim, with the unit in its text. None if it is not there."""
    for row in having(sources.published.get(name, []), method=method, **wanted):
        cell = cells.published(row)
        return cell._replace(text=f"{cell.text} %" if "%" in cell.unit else f"{cell.text}×")
    return None


def times(records):
    return {record["name"]: record["median_seconds"] for record in records if results.why_no_time(record) is None}


def gain(found, better, worse):
    """Returns the cell of the throughput of `better` over that of `worse` in {method: seconds}: a gain in percent, or the ratio
    if it is ten times and more. None without both."""
    if not {better, worse} <= found.keys():
        return None
    ratio = found[worse] / found[better]
    value = 100 * (ratio - 1)
    text = cells.signed(value) if ratio < 10 else f"{digits(ratio)}×"
    return cells.derived(value, text, "%", f"time of {worse} / time of {better} - 1")


def factor(found, slow, fast):
    """Returns the cell of time over time. None without both."""
    if not {slow, fast} <= found.keys():
        return None
    value = found[slow] / found[fast]
    return cells.derived(value, f"{digits(value)}×", "", f"time of {slow} / time of {fast}")


def measured(sources, make, wanted, slow, fast):
    """Returns the cell of the most ranks, and then of the most tokens, that measured both methods in one launch."""
    found = []
    for (machine, executor, timing), records in sources.here(**wanted):
        whole = [one for one in records if one["bench"] == "collective" or operators.stands_for_its_method(one)]
        for axes, run in {(one["contest"], one["run"]) for one in whole if one["ranks"] > 1 and timing == "isolated"}:
            of_launch = having(whole, contest=axes, run=run)
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


def claims(sources):
    """Yields the row of each claim."""
    for theirs, title, name in (("LASP-2 vs LASP-1", "LASP-2 over LASP-1", "lasp1"),
                                ("LASP-2 vs Ring Attention", "LASP-2 over Ring Attention", "ring_attention")):
        found = times(sources.on(A100, bench="model", model=LASP2_MODEL, line="full", ranks=LASP2_RANKS, tokens=LASP2_TOKENS))
        yield Row(title, "2048K tokens on 64 GPUs", [claimed(sources, "lasp2_relative_speed", theirs, seq_len="2048K"), gain(
            found, "lasp2", name), measured(sources, gain, LAYER, "lasp2", name)])
    scans = {"bench": "collective", **SHAPE}
    yield Row("All-Scan over all-gather", f"{MANY} GPUs, table 2", [
        claimed(sources, "zeco_headlines", "All-Scan vs all-gather"),
        factor(times(sources.on(H100, ranks=MANY, **scans)), "ring_all_gather", "all_scan"),
        measured(sources, factor, scans, "all_gather_scan", "all_scan")])
    yield Row("ZeCO's operator, at most", f"up to {MANY} GPUs, tables 3 and 4", [
        claimed(sources, "zeco_headlines", "Operator"), most_of_operators(sources),
        measured(sources, factor, LAYER | {"heads": zeco_operators.HEADS}, "lasp2", "zeco")])
    found = times(record for record in zeco_throughput.sharded(sources, zeco_throughput.TOKENS) if record["ranks"] == MANY)
    models = {"bench": "model", "line": "full", "model": zeco_throughput.MODEL}
    yield Row("ZeCO over LASP-2, model", f"{MANY} GPUs, 8M tokens, table 6", [
        claimed(sources, "zeco_headlines", "Model throughput vs LASP-2"), gain(found, "zeco", "lasp2"),
        measured(sources, gain, models, "zeco", "lasp2")])
    yield Row("1M tokens on 64 GPUs over 16K on one", "operator, 16K tokens a GPU", [
        claimed(sources, "zeco_headlines", "1M tokens on 64 devices vs 16K on one"),
        factor(operators_of(sources, zeco_operators.TOKENS[0], 64), "zeco", "local"),
        measured(sources, factor, LAYER, "zeco", "local")])


def operators_of(sources, tokens, ranks):
    return times(record for method in zeco_operators.METHODS
                 for record in zeco_operators.simulated_records(sources, method, tokens, PASS) if record["ranks"] == ranks)


def most_of_operators(sources):
    """Returns the largest factor of a LASP over ZeCO on the most GPUs, in its published order."""
    rivals = [cell._replace(text=f"{cell.text} (over `{name}`, {tokens // 1024}K tokens)") for tokens in zeco_operators.TOKENS
              for name in ("lasp1", "lasp2") if (cell := factor(operators_of(sources, tokens, MANY), name, "zeco"))]
    return max(rivals, key=lambda cell: float(cell.value), default=None)
