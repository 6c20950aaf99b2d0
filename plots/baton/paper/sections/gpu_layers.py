# SPDX-License-Identifier: Apache-2.0
"""Layers on GPUs as measured: local kernels beside other projects', what an exchange adds to them, what is hidden."""

import collections

from baton import estimates, operators, results, schema
from baton.checks import PASSES
from baton.exchanges import ELSEWHERE
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections import zeco_operators
from baton.paper.sources import having, where_measured

DTYPE = zeco_operators.DTYPE
BASES = (operators.LOCAL, "zeco")  # the methods that the others are compared with
# For peers.jsonl, made by scripts that the adapters replaced: a kernel with more error computes something else.
MOST_ERROR = 2e-2
# What kernels leave out that are not exact, by the project in peers.jsonl and by the adapter's method.
LEFT_OUT = {"FlashQLA": "FlashQLA cuts a head into segments and drops what the state was before a warm-up whose log gates "
                        "sum to -10; it drops nothing of a head without gates"}
LEFT_OUT["flash_qla"] = LEFT_OUT["FlashQLA"]
OTHER_LAYERS = ("conv", "qk_heads", "state", "mask", "packed", "documents", "batch", "sequence")  # what a plain layer says nothing of


def is_plain(record):
    """True for a layer without any of what only some layers have."""
    return not any(schema.is_said(record, key) for key in OTHER_LAYERS)


def section(sources):
    return Section("Layers on GPUs", [
        Text("One layer with bf16 tensors on GPUs. The hidden share of an exchange is (exposed - overlapped) / "
             "(exposed - compute_only), medians of one launch; where noise or a slower overlap leaves 0 to 100 %, a word "
             "stands. `local` is the layer without its exchange."),
        *(block for attention in KERNELS for tokens, heads in KERNEL_SHAPES
          for block in [kernel_table(sources, attention, tokens, heads)] if block),
        *(block for machine, records in sources.measured.items() for block in machine_tables(sources, machine, records))])


# --- Local kernels, one GPU -----------------------------------------------------------------------------

KERNEL_SHAPES = ((16384, 16), (32768, 16), (8192, 32))  # tokens and heads of flash-linear-attention's script


# The method that is a layer's local work on one GPU, by layer.
KERNELS = {"linear": operators.LOCAL, "gdn": operators.LOCAL, "kda": operators.LOCAL, "rwkv7": operators.LOCAL,
           "softmax": "ring_attention_softmax"}


def alone(sources, tokens, heads, attention="linear"):
    """Returns {method: [(label, machine, {pass: record})]} of one GPU: of the local work, and of methods in Python. Of several
    kinds of gates and of softmax kernels the default ones count."""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (machine, executor, timing), records in sources.here(
            bench="operator", attention=attention, ranks=1, tokens=tokens, heads=heads, dtype=DTYPE):
        for record in sorted(records, key=lambda one: (one["gates"] == "mixed", one.get("kernel") == "cudnn", one["time"])):
            is_wanted = record["name"] == KERNELS[attention] or record["implementation"] == record["name"]
            if is_wanted and is_plain(record):
                found[record["name"]][where_measured(machine, executor, timing), machine][record["pass"]] = record
    return {name: [(*place, passes) for place, passes in places.items()] for name, places in found.items()}


def peers_of(sources, tokens, heads, attention="linear", ranks=1):
    """Returns {(machine, name): {pass: row}} of other projects' kernels on so many GPUs that are right, each row the last of
    its launches with the estimate of all; the name says whether it is exact. Rows of before 2026-11-26 name no layer; those
    of softmax attention have a mask."""
    found = collections.defaultdict(list)
    for machine, rows in sources.peers.items():
        for row in having(rows, tokens=tokens, heads=heads, dtype=DTYPE):
            layer = row.get("attention", "softmax" if "mask" in row else "linear")
            if layer == attention and row.get("mask", "causal") == "causal" and row.get("ranks", 1) == ranks \
                    and row.get("error", 0) <= MOST_ERROR:
                exact = "not exact" if row["peer"] in LEFT_OUT else "exact"
                found[machine, f"{row['peer']} `{row['kernel']}`, {exact}", row["pass"]].append(row)
    passes = collections.defaultdict(dict)
    for (machine, name, which), of_launches in found.items():
        passes[machine, name][which] = {**of_launches[-1], "median_seconds": estimates.mean(
            row["median_seconds"] for row in of_launches)}
    return dict(passes)


def kernel_table(sources, attention, tokens, heads):
    in_python = alone(sources, tokens, heads, attention)
    ours = in_python.pop(KERNELS[attention], [])
    rows = [Row(f"`{KERNELS[attention]}`", f"measured, {label}", times_of(passes, machine)) for label, machine, passes in ours]
    theirs = [(f"`{name}`, in Python" + ", not exact" * (name in LEFT_OUT), label, machine, times_of(passes, machine))
              for name, places in in_python.items() for label, machine, passes in places]
    theirs += [(name, machine, machine, [cells.peer(peers.get(which), machine) for which in PASSES])
               for (machine, name), peers in peers_of(sources, tokens, heads, attention).items()]
    for name, place, machine, times in theirs:
        rows.append(Row(name, f"measured, {place}", times))
        rows += [Row("", f"over `{KERNELS[attention]}`, {label}", cells.plain(
            cells.ratio(cell, own) for cell, own in zip(times, times_of(passes, here))))
                 for label, here, passes in ours if here == machine]
    of_kind = "" if attention == "linear" else f"_{attention}"
    title = f"Local work of one GPU, {attention} layers, {tokens // 1024}K tokens, {heads} heads of 128, ms"
    return Table(f"kernels_{tokens // 1024}k_{heads}{of_kind}", title, list(PASSES), rows,
                 left_out(rows)) if rows else None


def times_of(passes, machine):
    return [cells.timed(passes.get(which), machine) for which in PASSES]


def left_out(rows):
    """Returns what kernels of other projects leave out that have a row here."""
    return list(dict.fromkeys(f"Not exact: {left}." for peer, left in LEFT_OUT.items()
                              if any(row.label.startswith((f"{peer} ", f"`{peer}`")) for row in rows)))


# --- What the exchange adds -----------------------------------------------------------------------------


def machine_tables(sources, machine, records):
    """Yields a table for each executor and number of tokens, those of softmax and of each delta rule on their own."""
    layers = [record for record in having(records, bench="operator", dtype=DTYPE) if record["ranks"] > 1
              and results.why_no_time(record) is None and record.get("device") and is_plain(record)]
    for place in sorted({tuple(one[key] for key in PLACE) for one in layers}):
        wanted = [one for one in layers if tuple(one[key] for key in PLACE) == place]
        attention, executor, timing, tokens, heads = place
        rows = [*rows_of(wanted, machine), *rows_of_peers(sources, machine, attention, tokens, heads, columns(wanted))]
        yield Table(f"layers_{machine}_{executor}_{timing}_{tokens // 1024}k" + f"_{attention}" * (attention != "linear"),
                    f"{tokens // 1024}K tokens a GPU, {heads} heads, {attention} methods, ms "
                    f"({where_measured(machine, executor, timing)})",
                    [f"{which}, P={ranks}" for which, ranks in columns(wanted)], rows, list(notes(rows)))


PLACE = ("attention", "executor", "cadence", "tokens", "heads")


def notes(rows):
    texts = {cell.text for row in rows for cell in row.cells if cell}
    yield "Ratios are of medians."
    yield from left_out(rows)
    if any(text.endswith(ELSEWHERE) for text in texts):
        yield f"{ELSEWHERE} The two times are of different launches."
    for word, meaning in HIDDEN_WORDS.items():
        if any(text.startswith(word) for text in texts):
            yield f"{word}: {meaning}."


def columns(records):
    found = {(record["pass"], record["ranks"]) for record in records}
    return sorted(found, key=lambda column: (PASSES.index(column[0]), column[1]))


def rows_of(records, machine):
    points = operators.points(sorted(records, key=lambda record: record["time"], reverse=True))
    stood = [record for record in points.values() if operators.stands_for_its_method(record)]
    for row, label in operators.labels({operators.row(record) for record in stood}).items():
        of_row = {(record["pass"], record["ranks"]): record for record in stood if operators.row(record) == row}
        yield from method_rows(points, row, label, [of_row.get(place) for place in columns(records)], machine)


def rows_of_peers(sources, machine, attention, tokens, heads, places):
    """Yields a row for each layer of another project that was measured on some of these numbers of GPUs."""
    found = {}
    for ranks in {ranks for _, ranks in places}:
        for (where, name), passes in peers_of(sources, tokens, heads, attention, ranks).items():
            if where == machine:
                found.setdefault(name, {}).update({(which, ranks): row for which, row in passes.items()})
    for name, rows in sorted(found.items()):
        yield Row(name, "measured", [cells.peer(rows.get(place), machine) for place in places])


def method_rows(points, row, label, stood, machine):
    """Yields the rows of a method. `stood` has the record of its published form for each column, or None."""
    yield Row(f"`{label}`", "measured", [cells.timed(record, machine) for record in stood])
    if row.method == operators.LOCAL:
        return
    yield Row("", "measured, exposed", [
        cells.timed(record and operators.find(points, record, "exposed"), machine) for record in stood])
    yield Row("", "hidden", [hidden(points, record) for record in stood])
    for base in BASES:
        if row.method != base:
            yield Row("", f"over `{base}`", [over(points, base, record) for record in stood])


# The words for shares of an exchange that are none.
LOST, NONE, ALL = "lost in noise", "none", "all"
HIDDEN_WORDS = {
    LOST: "the layer that waits for its exchange and the layer without one have intervals that overlap, so there is no "
          "share to tell",
    NONE: "overlapping takes longer than waiting, by as many percent of the exchange as stand in brackets",
    ALL: "the layer that overlaps is faster than the layer without an exchange"}


def hidden(points, record):
    """Returns the share of the exchange that local work hides, in words where it is none from 0 to 100 %."""
    share = record and record.get("hidden")
    if share is None:
        return None
    alone, waited = (operators.find(points, record, mode) for mode in ("compute_only", "exposed"))
    text = f"{100 * share:.0f} %"
    if alone and waited and waited["ci95_seconds"][0] <= alone["ci95_seconds"][1]:
        text = LOST
    elif share < 0:
        text = f"{NONE} ({-100 * share:.0f})"
    elif share > 1:
        text = ALL
    return cells.derived(share, text, "", "medians of three modes")


def over(points, base, record):
    """Returns the ratio to the method `base` at the same pass, ranks and gate, with a mark if that is of another launch."""
    found = [one for one in points.values() if record and one["name"] == base and operators.stands_for_its_method(one)
             and all(one[key] == record[key] for key in ("pass", "ranks", "gate"))]
    if not found:
        return None
    value = record["median_seconds"] / found[0]["median_seconds"]
    mark = "" if found[0]["run"] == record["run"] else ELSEWHERE
    return cells.derived(value, f"{value:.3f}{mark}", "", f"measured / measured {base}")
