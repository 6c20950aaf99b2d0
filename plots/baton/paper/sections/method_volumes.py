# SPDX-License-Identifier: Apache-2.0
"""What every method sends, counted from its schedules, beside the closed forms.

The closed forms are data (results/paper/volumes.csv), in these terms of one rank: `u` bytes of its queries, `f` heads of
keys over heads of queries, `S` bytes of its state, `lse` bytes of one f32 number a query and head, `wide` the bytes of an
f32 sum over those of a tensor's element, `H` heads of queries, and ranks as a grid of a x b.
"""

import collections
import math

from baton import results
from baton.paper import cells
from baton.paper.cells import Row
from baton.paper.page import Section, Table, Text
from baton.paper.sections import megatron
from baton.paper.sources import H100, having

RANKS = (4, 8, 64)
LENGTHS = tuple(size * 2**10 for size in (8, 64, 512, 4096))  # tokens of the whole sequence
HEADS, WIDTH, ELEMENT = 64, 128, 2  # of queries, and so many channels of bf16
MIB = 2**20
PASSES = ("forward", "backward")


def section(sources):
    return Section("Volumes: what every method sends", [
        Text(f"{HEADS} heads of {WIDTH} in bf16, as many heads of keys as of queries, states in f32. Bytes, messages and "
             "hops are counted from the recorded schedules as they run; no formula stands under **counted**. The closed "
             "forms below them are those of the papers and their code, and a form that differs from the count by more than "
             "a quarter is marked: its source, below the table of forms, says what it leaves out."),
        *(table(sources, ranks) for ranks in RANKS),
        forms_table(counted_forms(sources))])


# --- The tables -----------------------------------------------------------------------------------------


def table(sources, ranks):
    records = [one for one in sources.on(H100, bench="operator", heads=HEADS, ranks=ranks, dtype="bf16")
               if results.why_no_time(one) is None and results.kv_heads(one) == HEADS and one["pass"] in PASSES]
    records += megatron.records(sources, ranks, LENGTHS, HEADS, WIDTH)
    rows = [row for name in sorted({one["name"] for one in records}) for which in PASSES
            for row in method_rows(sources, name, which, having(records, name=name, **{"pass": which}), ranks)]
    lengths = [f"{length // 1024}K" if length < MIB else f"{length // MIB}M" for length in LENGTHS]
    return Table(f"method_volumes_{ranks}", f"MiB that the busiest of {ranks} ranks sends, by tokens of the whole sequence",
                 [*lengths, "messages", "hops"], rows, [
                     "Messages: of all ranks, over their number. Hops: the most messages on any chain of steps that wait "
                     "for one another. Both are the same at all lengths. Memory: all buffers of the rank that has most, its "
                     "tensors and what its steps work in; a backward pass alone is given what a forward pass keeps.",
                     *blocks_note(records), *hidden_states_note(records), *refused(sources, ranks)],
                 ranks != RANKS[0])


def method_rows(sources, name, which, records, ranks):
    found = {one["tokens"] * ranks: one for one in records}
    counted = [found.get(length) for length in LENGTHS]
    if not any(counted):
        return
    one = next(filter(None, counted))
    own = [record and mebibytes(record, record["sent_bytes"]) for record in counted]
    yield Row(f"`{name}`", f"counted, {which}", [
        *own, cells.counted(one["messages"] / ranks, f"{one['messages'] / ranks:.1f}", "messages a rank", one),
        cells.counted(one["hops"], str(one["hops"]), "hops", one)])
    if any(map(memory, counted)):
        yield Row("", f"memory, counted, {which}", [*map(memory, counted), None, None])
    if name == megatron.NAME:
        yield Row("", f"simulated, {which}, exchange alone, ms", [*map(cells.timed, counted), None, None])
    for form in having(sources.published.get("volumes", []), method=name, **{"pass": which}):
        yield Row("", f"closed form, {form['form']}", [*(evaluated(form, *of) for of in zip(counted, own)), None,
                                                         hops(form, one)])


def counted_forms(sources):
    """Returns the closed forms of methods that were counted."""
    counted = {one["name"] for one in sources.on(H100, bench="operator", heads=HEADS) if results.why_no_time(one) is None}
    counted |= {one["name"] for ranks in RANKS for one in megatron.records(sources, ranks, LENGTHS, HEADS, WIDTH)}
    return [form for form in sources.published.get("volumes", []) if form["method"] in counted]


def forms_table(forms):
    """Returns the closed forms with their sources."""
    rows = [Row(f"`{form['method']}`", f"{form['pass']}, {form['form']}", [shown_form(form, "bytes"), shown_form(form, "hops")])
            for form in forms]
    sources = collections.defaultdict(dict)
    for form in forms:
        if form["form"] == "derived":
            sources[form["source"]][f"`{form['method']}`"] = None
    return Table("volume_forms", "The closed forms", ["bytes that a rank sends", "hops"], rows, [
        "u: bytes of a rank's queries. f: heads of keys over heads of queries. S: bytes of a state. lse: bytes of one f32 "
        "number a query and head. wide: bytes of an f32 sum over those of a tensor's element. H: heads of queries. a x b: the "
        "ranks as a grid. Derived: from the algorithm, by hand.",
        *(f"{', '.join(names)}: {source}." for source, names in sources.items())], True)


def shown_form(form, key):
    """Returns a closed form as a cell, products without a sign."""
    kind = cells.PUBLISHED if form["form"] == "published" else cells.DERIVED
    return cells.Cell(form[key].replace("*", " "), form[key], key, kind, form["source"]) if form[key] else None


def mebibytes(record, of_bytes):
    return cells.counted(of_bytes / MIB, cells.digits(of_bytes / MIB), "MiB", record)


def memory(record):
    """Returns the memory of the rank that has most, or None if the record does not tell it."""
    if record and record.get("scratch_bytes") is not None:
        return mebibytes(record, record["tensor_bytes"] + record["scratch_bytes"])
    return None


def evaluated(form, record, counted):
    """Returns the closed form's bytes for the case of a record, marked if they are far from the `counted` cell."""
    if record is None:
        return None
    value = value_of(form["bytes"], record) / MIB
    far = float(counted.value) > 0 and cells.is_far(value / float(counted.value))
    return cells.derived(value, cells.digits(value), "MiB", f"{form['bytes']}: {form['source']}")._replace(off=far)


def hops(form, record):
    value = form["hops"] and value_of(form["hops"], record)
    return cells.derived(value, f"{value:g}", "hops", f"{form['bytes']}: {form['source']}")._replace(
        off=value != record["hops"]) if value else None


def value_of(form, record):
    """Returns the value of a closed form, which is arithmetic in Python's notation."""
    return eval(form, {"__builtins__": {}}, {"max": max, **terms(record)})  # pylint: disable=eval-used


def terms(record):
    """Returns {term: its value} for the case of a record."""
    ranks, rows = record["ranks"], record["tokens"] * record["heads"]
    short = max(a for a in range(1, math.isqrt(ranks) + 1) if ranks % a == 0)
    return {"P": ranks, "a": short, "b": ranks // short, "H": record["heads"], "u": rows * record["d_k"] * ELEMENT,
            "f": results.kv_heads(record) / record["heads"], "S": record["state_bytes"], "lse": 4 * rows,
            "wide": 4 / ELEMENT}


def blocks_note(records):
    cut = sorted({one["name"] for one in records if one["blocks"] > 1})
    if cut:
        yield f"In {max(one['blocks'] for one in records)} blocks of the state: {', '.join(f'`{name}`' for name in cut)}."


def hidden_states_note(records):
    if any(one["name"] == megatron.NAME for one in records):
        yield (f"`{megatron.NAME}` shares heads and not tokens, so it is no row of operator_bench: `{megatron.GATHER}` and "
               f"`{megatron.SCATTER}` of hidden states as wide as the queries, once each forward, and a second gather backward. "
               "Their time is that of the exchange alone; a method's other work stands in the maps of the fastest.")


def refused(sources, ranks):
    reasons = {one["name"]: one["skipped"] for one in sources.on(H100, bench="operator", heads=HEADS, ranks=ranks)
               if "skipped" in one and results.kv_heads(one) == HEADS}
    if reasons:
        yield "Skipped: " + ", ".join(f"`{name}` ({reason})" for name, reason in sorted(reasons.items())) + "."
