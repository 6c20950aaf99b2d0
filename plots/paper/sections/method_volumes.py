# SPDX-License-Identifier: Apache-2.0
"""What every method sends, counted from its schedules, beside the closed forms; and a published table of such volumes.

The closed forms are data (results/paper/volumes.csv), in these terms of one rank: `u` bytes of its queries, `f` heads of
keys over heads of queries, `S` bytes of its state, `lse` bytes of one f32 number a query and head, `wide` the bytes of an
f32 sum over those of a tensor's element, `H` heads of keys, and ranks as a grid of a x b.
"""

import collections
import math

from lib import results
from paper import cells
from paper.cells import Row
from paper.page import Section, Table, Text, told
from paper.records import H100, having

RANKS = (4, 8, 64)
LENGTHS = tuple(size * 2**10 for size in (8, 64, 512, 4096))  # tokens of the whole sequence
HEADS, WIDTH, ELEMENT = 64, 128, 2  # of queries, and so many channels of bf16
KV_HEADS = 8  # of the published table
DISPUTED_RANKS, DISPUTED_TOKENS = 8, 8192
MIB = 2**20
PASSES = ("forward", "backward")

# The published table of volumes: its methods, and ours.
DISPUTED = {"Ulysses": "ulysses_softmax", "AllGather-KV": "all_gather_kv", "Ring": "ring_attention_softmax"}
SHARES = {"1/8": KV_HEADS, "1": HEADS}  # heads of keys over heads of queries
OF_ONE_RANK = "Ulysses"  # the published volume in queries of one rank; the others are in those of all ranks


def section(sources):
    return Section("Volumes: what every method sends", [
        Text(f"{HEADS} heads of {WIDTH} in bf16, as many heads of keys as of queries, states in f32. Bytes, messages and "
             "hops are counted from the recorded schedules as they run; no formula stands under **counted**. The closed "
             "forms below them are those of the papers and their code, and a form that differs from the count by more than "
             "a quarter is marked: its source, below the table of forms, says what it leaves out."),
        *(table(sources, ranks) for ranks in RANKS),
        forms_table(sources.published.get("volumes", [])),
        *told(lambda: dispute(sources)),
        disputed_table(sources)])


# --- The tables -----------------------------------------------------------------------------------------


def table(sources, ranks):
    records = [one for one in sources.on(H100, bench="operator", heads=HEADS, ranks=ranks, dtype="bf16")
               if results.why_no_time(one) is None and results.kv_heads(one) == HEADS and one["pass"] in PASSES]
    rows = [row for name in sorted({one["name"] for one in records}) for which in PASSES
            for row in method_rows(sources, name, which, having(records, name=name, **{"pass": which}), ranks)]
    lengths = [f"{length // 1024}K" if length < MIB else f"{length // MIB}M" for length in LENGTHS]
    return Table(f"method_volumes_{ranks}", f"MiB that the busiest of {ranks} ranks sends, by tokens of the whole sequence",
                 [*lengths, "messages", "hops"], rows, [
                     "Messages: of all ranks, over their number. Hops: the most messages on any chain of steps that wait "
                     "for one another. Both are the same at all lengths.", *blocks_note(records), *refused(sources, ranks)],
                 ranks != RANKS[0])


def method_rows(sources, name, which, records, ranks):
    found = {one["tokens"] * ranks: one for one in records}
    counted = [found.get(length) for length in LENGTHS]
    if not any(counted):
        return
    one = next(filter(None, counted))
    own = [record and megabytes(record) for record in counted]
    yield Row(f"`{name}`", f"counted, {which}", [
        *own, cells.counted(one["messages"] / ranks, f"{one['messages'] / ranks:.1f}", "messages a rank", one),
        cells.counted(one["hops"], str(one["hops"]), "hops", one)])
    for form in having(sources.published.get("volumes", []), method=name, **{"pass": which}):
        yield Row("", f"closed form, {form['form']}", [*(evaluated(form, record, beside) for record, beside in
                                                         zip(counted, own)), None, hops(form, one)])


def forms_table(forms):
    """Returns the closed forms of methods that have one, with their sources."""
    rows = [Row(f"`{form['method']}`", f"{form['pass']}, {form['form']}", [shown_form(form, "bytes"), shown_form(form, "hops")])
            for form in forms]
    sources = collections.defaultdict(dict)
    for form in forms:
        if form["form"] == "derived":
            sources[form["source"]][f"`{form['method']}`"] = None
    return Table("volume_forms", "The closed forms", ["bytes that a rank sends", "hops"], rows, [
        "u: bytes of a rank's queries. f: heads of keys over heads of queries. S: bytes of a state. lse: bytes of one f32 "
        "number a query and head. wide: bytes of an f32 sum over those of a tensor's element. H: heads of keys. a x b: the "
        "ranks as a grid. Derived: from the algorithm, by hand.",
        *(f"{', '.join(names)}: {source}." for source, names in sources.items())], True)


def shown_form(form, key):
    """Returns a closed form as a cell, products without a sign."""
    kind = cells.PUBLISHED if form["form"] == "published" else cells.DERIVED
    return cells.Cell(form[key].replace("*", " "), form[key], key, kind, form["source"]) if form[key] else None


def megabytes(record):
    value = record["sent_bytes"] / MIB
    return cells.counted(value, cells.digits(value), "MiB", record)


def evaluated(form, record, beside):
    """Returns the closed form's bytes for the case of a record, marked if they are far from the counted cell `beside`."""
    if record is None:
        return None
    value = value_of(form["bytes"], record) / MIB
    far = float(beside.value) > 0 and cells.is_far(value / float(beside.value))
    return cells.derived(value, cells.digits(value), "MiB", f"{form['bytes']}: {form['source']}")._replace(off=far)


def hops(form, record):
    if not form["hops"]:
        return None
    value = value_of(form["hops"], record)
    return cells.derived(value, f"{value:g}", "hops", f"{form['bytes']}: {form['source']}")._replace(
        off=value != record["hops"])


def value_of(form, record):
    """Returns the value of a closed form, which is arithmetic in Python's notation."""
    return eval(form, {"__builtins__": {}}, {"max": max, **terms(record)})  # pylint: disable=eval-used


def terms(record):
    """Returns {term: its value} for the case of a record."""
    ranks, rows = record["ranks"], record["tokens"] * record["heads"]
    short = max(a for a in range(1, math.isqrt(ranks) + 1) if ranks % a == 0)
    return {"P": ranks, "a": short, "b": ranks // short, "H": results.kv_heads(record), "u": queries(record),
            "f": results.kv_heads(record) / record["heads"], "S": record["state_bytes"], "lse": 4 * rows,
            "wide": 4 / ELEMENT}


def queries(record):
    """Returns the bytes of a rank's queries."""
    return record["tokens"] * record["heads"] * record["d_k"] * ELEMENT


def blocks_note(records):
    cut = sorted({one["name"] for one in records if one["blocks"] > 1})
    if cut:
        yield f"In {max(one['blocks'] for one in records)} blocks of the state: {', '.join(f'`{name}`' for name in cut)}."


def refused(sources, ranks):
    reasons = {one["name"]: one["skipped"] for one in sources.on(H100, bench="operator", heads=HEADS, ranks=ranks)
               if "skipped" in one and results.kv_heads(one) == HEADS}
    if reasons:
        yield "Skipped: " + ", ".join(f"`{name}` ({reason})" for name, reason in sorted(reasons.items())) + "."


# --- A published table of volumes -----------------------------------------------------------------------


def disputed_records(sources):
    """Returns {(method as published, heads of keys over those of queries): record}, of those that were counted."""
    found = {}
    for record in sources.on(H100, bench="operator", heads=HEADS, ranks=DISPUTED_RANKS, tokens=DISPUTED_TOKENS,
                             dtype="bf16", **{"pass": "forward"}):
        for title, name in DISPUTED.items():
            for share, kv_heads in SHARES.items():
                if (record["name"], results.kv_heads(record)) == (name, kv_heads) and results.why_no_time(record) is None:
                    found[title, share] = record
    return found


def in_queries(record):
    """Returns what the busiest rank sends over the bytes of one rank's queries."""
    return record["sent_bytes"] / queries(record)


def disputed_table(sources):
    counted = disputed_records(sources)
    rows = []
    for title, name in DISPUTED.items():
        theirs = having(sources.published.get("vllm_omni_5092", []), method=title)
        rows += [Row(title, "published", [next(map(cells.published, having(theirs, kv_share=share)), None)
                                          for share in SHARES]),
                 Row(f"`{name}`", "counted, over queries of one rank", [over(counted.get((title, share)), 1)
                                                                         for share in SHARES]),
                 Row("", "counted, over queries of all ranks", [over(counted.get((title, share)), DISPUTED_RANKS)
                                                                 for share in SHARES])]
    return Table("disputed_volumes", f"Volumes of a published table beside counted ones, {DISPUTED_RANKS} ranks, forward",
                 [f"f = {share}" for share in SHARES], rows,
                 ["f: heads of keys over heads of queries. Published: in units of \"Q\", of which the table does not say "
                  "whether it is one rank's or the sequence's."])


def over(record, ranks):
    if record is None:
        return None
    value = in_queries(record) / ranks
    return cells.counted(value, f"{value:.2f}", "times Q", record)


def dispute(sources):
    """Says which published volumes are in which unit. Throws KeyError without the counts."""
    counted = disputed_records(sources)
    told_of = []
    for share in SHARES:
        gather, ulysses = counted["Ring", share], counted["Ulysses", share]
        printed = {row["method"]: row["value"].lstrip("~") for row in sources.published["vllm_omni_5092"]
                   if row["kv_share"] == share}
        told_of.append(f"with f = {share} it has {printed['Ulysses']} against {printed['Ring']}, and the count is "
                       f"{in_queries(ulysses):.2f} against {in_queries(gather):.2f}")
    return ("**A published table mixes two units.** A table of a request for comments in vLLM-Omni "
            "counts the all-to-alls of Ulysses in queries of one rank, and the keys and values of a ring or a gather in "
            f"queries of the whole sequence, {DISPUTED_RANKS} times as many: {'; '.join(told_of)}, all over the queries of "
            "one rank. Ulysses' own figure lacks the factor (P-1)/P besides.")
