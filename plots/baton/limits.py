# SPDX-License-Identifier: Apache-2.0
"""The least time that a GPU's data sheet allows for the work of one rank, and which rows are faster than can be.

data_sheets.json has each GPU by the name that its driver gives: bf16 operations a second of the tensor cores without
sparsity, and bytes a second of its memory.
"""

import collections
import functools
import json
import pathlib

from baton import results, schema, words
from baton.estimates import MARGIN

MEMORY, TENSOR_CORES = "bandwidth", "FLOP/s"

CACHES = 256 << 20  # bytes: more than the caches of these GPUs have, so what is larger crosses their memory's wires
# How far beyond its time a bound must be in one launch, which does not know the error of the bound.
ONE_LAUNCH = schema.FIELDS["bound_seconds"]["margin"]

# `seconds` is the least time, and `by` what takes it.
Limit = collections.namedtuple("Limit", "seconds by")


@functools.cache
def sheets():
    return json.loads(pathlib.Path(__file__).with_name("data_sheets.json").read_text(encoding="utf-8"))


def least_time(record):
    """Returns the Limit of a layer or model, or None if neither the record nor a data sheet says enough.

    A layer reads its inputs and writes its outputs once. A model keeps more than that between its steps, so its
    operations alone count, at the record's own peak if it has one.
    """
    sheet = sheets().get((record.get("device") or {}).get("gpu")) if record.get("dtype") == "bf16" else None
    peak = record.get("peak_flops") or (sheet and sheet["flops_per_second"])
    if not peak or "flops_per_token" not in record:
        return None
    exchanges = record.get("mode") != "compute_only" and record.get("line", "full") == "full"
    all_tokens = schema.value(record, "sequence")
    tokens = all_tokens / record["ranks"] if all_tokens else record["tokens"]
    sequence = tokens * (record["ranks"] if exchanges else 1)
    pairs = 2 * record["visible_pairs"] / record["ranks"] if "visible_pairs" in record else tokens * sequence
    flops = tokens * record["flops_per_token"] + pairs * record["flops_per_pair"]
    limits = [Limit(flops / peak, TENSOR_CORES)]
    if sheet and record["bench"] == "operator" and record.get("tensor_bytes"):
        limits.append(Limit(record["tensor_bytes"] / sheet["bytes_per_second"], MEMORY))
    return max(limits)


def why_impossible(row):
    """Says why the time of a report.rows.Row cannot be, such as `takes 81 % of its bound, ...`; nothing if it can.

    More than all of a peak cannot be, nor a time below the bound by more than the error of the bound. Over launches that
    is the interval of bound over time beyond MARGIN. harness/record/record.cpp says the same under the benches' tables.
    """
    record = row.records[-1]
    if not row.is_timed or row.is_simulated or results.crowded(record):
        return ""
    limit, slowest = least_time(record), row.interval[1] if row.interval else record["ci95_seconds"][1]
    if limit and limit.seconds > slowest and (limit.by == TENSOR_CORES or record["tensor_bytes"] > CACHES):
        whose = "--peak is not that of this hardware" if record.get("peak_flops") else "the data sheet has no such rate"
        return f"takes {words.percent(limit.seconds / row.median, 0)} of the peak ({limit.by}), which cannot be: {whose}"
    if not row.bound_share:
        return ""
    least = row.bound_interval[0] / (1 + MARGIN) if row.bound_interval else row.bound / slowest / (1 + ONE_LAUNCH)
    return (f"takes {words.percent(1 / row.bound_share, 0)} of its bound, less than the error of the bound allows, which cannot be: "
            "the link was measured slower than it is") if least > 1 else ""
