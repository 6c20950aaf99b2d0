# SPDX-License-Identifier: Apache-2.0
"""What comparisons have in common and where they differ, in words: titles of figures, headings and columns of tables."""

import collections

from baton import schema, words
from baton.report import comparisons

# The axes that a heading or a column may name, in that order. Any other axis with a number is named where it differs.
AXES = ("ranks", "state_bytes", "tokens", "packed", "pass", "direction", "map", "cadence", "heads", "kv_heads", "latent",
        "d_k", "d_v", "dtype", "kernel", "wire_dtype", "gate", "gates", "chunk", "groups", "ranks_per_node", "ranks_per_gpu",
        "rounds")
TITLES = {"state_bytes": "size", "packed": "documents of", "direction": "direction", "map": "maps", "kv_heads": "heads of keys",
          "latent": "keys", "wire_dtype": "wire", "ranks_per_node": "ranks per node", "ranks_per_gpu": "ranks per GPU"}
VALUES = {"state_bytes": words.size, "packed": lambda mean: str(mean or "all tokens"),
          "kv_heads": lambda count: str(count or "all"), "ranks_per_node": lambda count: str(count or "all"),
          "latent": lambda latent: "latent" if latent else "with values"}
# Those that tables always show.
ALWAYS = {"collective": ("ranks", "state_bytes"), "operator": ("ranks", "tokens", "pass"), "model": ("ranks", "tokens")}
OF_LAYERS, OF_EXCHANGES = ("pass", "dtype", "kernel"), ("direction", "map")
OF_A_MODEL = ("layers", "width")  # that its name in words has
OF_HEADS = ("kv_heads", "latent", "d_k", "d_v")  # that the words of heads have


def title_of(axis):
    return TITLES.get(axis) or schema.FIELDS[axis]["title"] or (axis.replace("_", " ") if "_per_" in axis else axis)


def value_of(comparison, axis):
    """What a comparison has at an axis; empty where it has none."""
    if axis in (OF_EXCHANGES if comparison.is_layer else OF_LAYERS):
        return ""
    if axis == "tokens" and not comparison.is_layer and comparison.kind not in comparisons.MOVE_TOKENS:
        return 0
    own = {"kernel": comparison["kernel"] or "own", "wire_dtype": comparison.wire, "rounds": (comparison["warmup"], comparison["rounds"])}
    found = own[axis] if axis in own else comparison[axis]
    return "" if found is None else found


def value(comparison, axis):
    """The same as text."""
    found = value_of(comparison, axis)
    return f"{found[0]}+{found[1]}" if axis == "rounds" else VALUES.get(axis, str)(found)


def axes_of(found):
    """AXES, and the others that have a number in the texts of these comparisons."""
    parts = dict.fromkeys(part.partition(":")[0] for one in found for part in one.group.axes.split("/") if ":" in part)
    return [*AXES, *(axis for axis in parts if axis in schema.FIELDS and axis not in (*AXES, *OF_A_MODEL, "warmup"))]


def columns(found):
    """The axes that a table of these comparisons has columns for: what differs, and what a reader looks for."""
    varying = {axis for axis in axes_of(found) if len({value_of(one, axis) for one in found}) > 1}
    if not found[0].is_layer:
        varying -= {"heads"}
    return [axis for axis in axes_of(found) if axis in varying or axis in ALWAYS[found[0]["bench"]]]


def constants(found, shown):
    """What all these comparisons share and no column says, as text."""
    one = found[0]
    hidden = (*shown, *["heads"] * (not one.is_layer and len({other["heads"] for other in found}) > 1))
    return ", ".join(f"{title_of(axis)} {value(one, axis)}" for axis in AXES
                     if axis not in hidden and value_of(one, axis) not in ("", schema.FIELDS[axis].get("absent"), 0, False))


def subject(comparison):
    """Who competes, in words: "Exclusive scan on GPUs, NVIDIA H200"."""
    topology, machine = comparison.group.topology, comparison.group.machine
    if topology:
        return f"~ {work(comparison)}, simulated: {topology}"
    return f"{work(comparison)} on {comparison.run_by}" + (f", {machine}" if machine else "")


def work(comparison):
    """What competes, in words: "Exclusive scan", "Linear attention" or a model."""
    if comparison.is_model:
        return f"Model {comparison.model}"
    what = comparisons.WORDS_OF_KINDS.get(comparison.kind, comparison.kind) + " attention" * comparison.is_layer
    return what[:1].upper() + what[1:]


def heading(comparison, *without):
    """The comparison in words, as a title has it: the work and its shape, without the axes named."""
    return ("~ " if comparison.group.topology else "") + ", ".join(filter(None, (work(comparison), shape(comparison, *without))))


def importance(comparison):
    """Orders figures and tables: what the answer is about first, measured before simulated, GPUs before processors."""
    answered = comparisons.LINEAR if comparison.is_layer else comparisons.SCAN
    return (comparison.kind != answered, not comparison.is_layer and schema.is_said(comparison.record, "map"), comparison.wire != "f32",
            comparison["cadence"] != "isolated", not comparison.on_gpus, not comparison.is_layer and comparison.way != "forward",
            bool(comparison.group.topology), comparison.way != "both", -comparison["ranks"])


def shape(comparison, *without):
    """The shape of the comparison in words, without the axes named: what a reader looks for, and what else tells it from
    others of its session."""
    texts = phrases(comparison)
    texts |= {axis: f"{title_of(axis)} {value(comparison, axis)}" for axis in comparison.apart if axis not in (*texts, *OF_HEADS)}
    return ", ".join(text for axis, text in texts.items() if text and axis not in without)


def phrases(comparison):
    """The axes that have words of their own; empty where nothing need be said."""
    tokens, sequence, packed = value_of(comparison, "tokens"), comparison["sequence"], comparison["packed"]
    long_tailed = " on average, of lognormal lengths" if comparison["packed_draw"] == "lognormal" else ""
    gate = "no gates" if comparison["gate"] == "none" else f"{comparison['gate']} gates" if "gate" in comparison.apart else ""
    return {"pass": passes(comparison.way) if comparison.is_layer else "",
            "direction": "" if comparison.is_layer or comparison.way == "forward" else comparison.way,
            "map": f"{comparison['map']} maps" if schema.is_said(comparison.record, "map") else "",
            "tokens": "" if sequence or not tokens else f"{tokens} tokens a rank",
            "sequence": f"{sequence} tokens" if sequence else "",
            "packed": f"packed documents of {packed}{long_tailed}" if packed else "",
            "packed_draw": "",  # said with the mean
            "documents": f"documents {comparison['documents']}" if comparison["documents"] else "",
            "heads": heads(comparison) if comparison.is_layer else "",
            "state_bytes": "" if comparison.is_layer else f"{words.binary_size(comparison['state_bytes'])} a rank",
            "dtype": comparison.dtype,
            "gate": gate if comparison.kind == comparisons.LINEAR else "",
            "ranks": comparison.where,
            "threads_per_rank": "one thread a rank" if comparison["threads_per_rank"] == 1 else "",
            "cadence": "" if comparison["cadence"] == "isolated" else f"{comparison['cadence']} rounds",
            "wire_dtype": "" if comparison.wire == "f32" else f"{comparison.wire} on the wire"}


def heads(comparison):
    """The heads of a layer in words, such as `16 heads of 128`."""
    on = f" on {comparison['kv_heads']}" if comparison["kv_heads"] else ""
    width = comparison["d_k"] if comparison["d_k"] == comparison["d_v"] else f"{comparison['d_k']} x {comparison['d_v']}"
    return f"{comparison['heads']}{on}{' latent' * comparison['latent']} {'head' if (comparison['kv_heads'] or comparison['heads']) == 1 else 'heads'} of {width}"


def passes(way):
    return "both passes" if way == "both" else f"{way} pass"


def note_differences(found):
    """Notes at each comparison in which axes it differs from others of the same work that the same machine ran."""
    groups = collections.defaultdict(list)
    for one in found:
        groups[work(one), one.run_by, one.group.topology, one.group.machine].append(one)
    for group in groups.values():
        apart = tuple(axis for axis in axes_of(group) if len({value_of(one, axis) for one in group}) > 1)
        for one in group:
            one.apart = tuple(axis for axis in apart if axis != "rounds") or apart  # rounds only where nothing else differs
    return found
