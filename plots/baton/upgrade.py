# SPDX-License-Identifier: Apache-2.0
"""Records and topologies of earlier versions, as the benches write them now: with present keys, and with the case, the
family and the axes of those that compete (`contest`), which older records lack.

The benches make these texts of today's records (Case::key, Case::contest). Nothing but this file says what they are of
older ones.
"""

from baton.schema import is_said, value

RENAMED = {"ranks_a_node": "ranks_per_node", "flops_a_token": "flops_per_token", "flops_a_pair": "flops_per_pair",
           "bytes_a_second": "bytes_per_second", "node_bytes_a_second": "node_bytes_per_second",
           "flops_a_second": "flops_per_second"}

SOFTMAX_METHODS = ("ring_attention_zigzag",)  # whose names do not say it, in records without the key `attention`

# What the text at `contest` has in which order, between the ranks and the timing; a part of NAMED bears its key.
SHAPE = ("heads", "kv_heads", "qk_heads", "latent", "d_k", "d_v")
WORK = {"collective": ("kind", "direction", *SHAPE, "tokens", "map"),
        "operator": ("pass", "state", "attention", "gate", "gates", "tokens", "packed", "packed_draw", "documents",
                     "batch", *SHAPE, "chunk", "conv", "sequence", "mask", "groups", "dtype", "kernel"),
        "model": ("attention", "model", "layers", "width", "mlp", "tokens", "heads", "d_k", "d_v", "chunk", "groups", "beside")}
NAMED = ("state", "gates", "map", "kernel", "packed_draw", "documents", "mask", "shares")
WITHOUT_MODES = ("local", "chunkwise_local", "chunkwise_local_softmax")  # methods whose cases have no mode in their names
RULES = ("linear", "softmax")  # kinds of attention that the name of a method says, and so no case


def renamed(one, levels=1):
    """Returns an object with present keys in place of old ones, at so many levels, and in the names of cases."""
    if not isinstance(one, dict) or levels == 0:
        return one.replace("ranks_a_node:", "ranks_per_node:") if isinstance(one, str) else one
    if levels == 1 and RENAMED.keys().isdisjoint(one):
        return one
    return {RENAMED.get(key, key): renamed(value, levels - 1) for key, value in one.items()}


def upgraded(record):
    """Returns the record with the keys that it lacks since it is old. One of today is returned as it is."""
    if "contest" in record or record.get("bench") not in WORK:
        return record
    new = {**record, "wire_dtype": record.get("wire_dtype") or ("bf16" if record["executor"].endswith("_bf16") else "f32")}
    if record["bench"] != "collective":
        is_softmax = "softmax" in record["name"] or record["name"] in SOFTMAX_METHODS
        new["attention"] = record.get("attention") or ("softmax" if is_softmax else "linear")
        new["dtype"] = record.get("dtype", "f32")
    if "contiguous" in record:
        new["layout"] = record.get("layout") or ("contiguous" if record["contiguous"] else "other")
    new["family"] = "GPUs" if record.get("device") and new["wire_dtype"] == "f32" else record["executor"]
    rounds = () if record["executor"] == "simulator" else ("warmup", "rounds")
    keys = ("family", "ranks", "ranks_per_node", "ranks_per_gpu", *WORK[record["bench"]], "cadence", *rounds)
    new["contest"] = "/".join(filter(None, (part(new, key) for key in keys)))
    if "case" not in record and is_case_known(record):
        new["case"] = case_of(new)
    return new


def is_case_known(record):
    """True if all axes of the case are in the record. The layers of a model may be of two kinds; and where ranks lay on
    several nodes, a record without its case does not say whether these were asked for."""
    return record["bench"] != "model" and "blocks_asked" in record and not value(record, "ranks_per_node")


def case_of(record):
    """The name of the case, as Case::key makes it."""
    mode = record.get("mode", "") if record["name"] not in WITHOUT_MODES else ""
    keys = ("ranks", "ranks_per_gpu", "threads_per_rank", *WORK[record["bench"]])
    parts = (part(record, key) for key in keys if key != "attention" or record[key] not in RULES)
    return "/".join(filter(None, (record["name"], mode, part(record, "shares"), record["executor"], *parts, record["cadence"],
                                  f"blocks:{record['blocks_asked']}")))


def part(record, key):
    """An axis as the text at `contest` has it: a number with its key, a text alone, and nothing where it is not said."""
    asked = next((one for one in record.get("case", "").split("/") if one.startswith(f"{key}:")), "")
    if key == "ranks_per_node" or asked and key in ("layers", "mlp"):
        return asked  # a record has what was found, and of layers their number alone
    if not is_said(record, key) or key == "kernel" and record[key] == "own":
        return ""
    if key == "gate" and record["attention"] not in RULES:
        return ""  # the word of a delta rule says it
    if key == "tokens" and record["bench"] == "operator" and is_said(record, "sequence"):
        return ""  # they follow from the sequence and its shares
    if record[key] is True:
        return key
    return f"{key}:{record[key]}" if key in NAMED or not isinstance(record[key], str) else record[key]
