# SPDX-License-Identifier: Apache-2.0
"""The least time that a GPU's data sheet allows for the work of one rank.

data_sheets.json has each GPU by the name that its driver gives: bf16 operations a second of the tensor cores without
sparsity, and bytes a second of its memory.
"""

import collections
import functools
import json
import pathlib

MEMORY, TENSOR_CORES = "bandwidth", "FLOP/s"

# `seconds` is the least time, and `by` what takes it.
Limit = collections.namedtuple("Limit", "seconds by")


@functools.cache
def sheets():
    return json.loads(pathlib.Path(__file__).with_name("data_sheets.json").read_text(encoding="utf-8"))


def of(record):
    """Returns the Limit of a layer or model, or None if neither the record nor a data sheet says enough.

    A layer reads its inputs and writes its outputs once. A model keeps more than that between its steps, so its
    operations alone count, at the record's own peak if it has one.
    """
    sheet = sheets().get((record.get("device") or {}).get("gpu")) if record.get("dtype") == "bf16" else None
    peak = record.get("peak_flops") or (sheet and sheet["flops_per_second"])
    if not peak or "flops_per_token" not in record:
        return None
    flops = record["tokens"] * (record["flops_per_token"] + record["flops_per_pair"] * record["tokens"] * record["ranks"])
    limits = [Limit(flops / peak, TENSOR_CORES)]
    if sheet and record["bench"] == "operator" and record.get("tensor_bytes"):
        limits.append(Limit(record["tensor_bytes"] / sheet["bytes_per_second"], MEMORY))
    return max(limits)
