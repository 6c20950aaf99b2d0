# SPDX-License-Identifier: Apache-2.0
"""What contests have in common and where they differ, in words: titles of figures, headings and columns of tables."""

import collections

from baton import schema, words
from baton.report import contests

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


def value_of(contest, axis):
    """What a contest has at an axis; empty where it has none."""
    if axis in (OF_EXCHANGES if contest.is_layer else OF_LAYERS):
        return ""
    if axis == "tokens" and not contest.is_layer and contest.kind not in contests.MOVE_TOKENS:
        return 0
    own = {"kernel": contest["kernel"] or "own", "wire_dtype": contest.wire, "rounds": (contest["warmup"], contest["rounds"])}
    found = own[axis] if axis in own else contest[axis]
    return "" if found is None else found


def value(contest, axis):
    """The same as text."""
    found = value_of(contest, axis)
    return f"{found[0]}+{found[1]}" if axis == "rounds" else VALUES.get(axis, str)(found)


def axes_of(found):
    """AXES, and the others that have a number in the texts of these contests."""
    parts = dict.fromkeys(part.partition(":")[0] for one in found for part in one.group.contest.split("/") if ":" in part)
    return [*AXES, *(axis for axis in parts if axis in schema.FIELDS and axis not in (*AXES, *OF_A_MODEL, "warmup"))]


def columns(found):
    """The axes that a table of these contests has columns for: what differs, and what a reader looks for."""
    varying = {axis for axis in axes_of(found) if len({value_of(one, axis) for one in found}) > 1}
    if not found[0].is_layer:
        varying -= {"heads"}
    return [axis for axis in axes_of(found) if axis in varying or axis in ALWAYS[found[0]["bench"]]]


def constants(found, shown):
    """What all these contests share and no column says, as text."""
    one = found[0]
    hidden = (*shown, *["heads"] * (not one.is_layer and len({other["heads"] for other in found}) > 1))
    return ", ".join(f"{title_of(axis)} {value(one, axis)}" for axis in AXES
                     if axis not in hidden and value_of(one, axis) not in ("", schema.FIELDS[axis].get("absent"), 0, False))


def subject(contest):
    """Who competes, in words: "Exclusive scan on GPUs, NVIDIA H200"."""
    topology, machine = contest.group.topology, contest.group.machine
    if topology:
        return f"~ {work(contest)}, simulated: {topology}"
    return f"{work(contest)} on {contest.run_by}" + (f", {machine}" if machine else "")


def work(contest):
    """What competes, in words: "Exclusive scan", "Linear attention" or a model."""
    if contest.is_model:
        return f"Model {contest.model}"
    what = contests.WORDS_OF_KINDS.get(contest.kind, contest.kind) + " attention" * contest.is_layer
    return what[:1].upper() + what[1:]


def heading(contest, *without):
    """The contest in words, as a title has it: the work and its shape, without the axes named."""
    return ("~ " if contest.group.topology else "") + ", ".join(filter(None, (work(contest), shape(contest, *without))))


def importance(contest):
    """Orders figures and tables: what the answer is about first, measured before simulated, GPUs before processors."""
    answered = contests.LINEAR if contest.is_layer else contests.SCAN
    return (contest.kind != answered, not contest.is_layer and schema.is_said(contest.record, "map"), contest.wire != "f32",
            contest["cadence"] != "isolated", not contest.on_gpus, not contest.is_layer and contest.way != "forward",
            bool(contest.group.topology), contest.way != "both", -contest["ranks"])


def shape(contest, *without):
    """The shape of the contest in words, without the axes named: what a reader looks for, and what else tells it from
    others of its session."""
    texts = phrases(contest)
    texts |= {axis: f"{title_of(axis)} {value(contest, axis)}" for axis in contest.apart if axis not in (*texts, *OF_HEADS)}
    return ", ".join(text for axis, text in texts.items() if text and axis not in without)


def phrases(contest):
    """The axes that have words of their own; empty where nothing need be said."""
    tokens, packed = value_of(contest, "tokens"), contest["packed"]
    gate = "no gates" if contest["gate"] == "none" else f"{contest['gate']} gates" if "gate" in contest.apart else ""
    return {"pass": passes(contest.way) if contest.is_layer else "",
            "direction": "" if contest.is_layer or contest.way == "forward" else contest.way,
            "map": f"{contest['map']} maps" if schema.is_said(contest.record, "map") else "",
            "tokens": f"{tokens} tokens a rank" if tokens else "",
            "packed": f"packed documents of {packed}" if packed else "",
            "heads": heads(contest) if contest.is_layer else "",
            "state_bytes": "" if contest.is_layer else f"{words.binary_size(contest['state_bytes'])} a rank",
            "dtype": contest.dtype,
            "gate": gate if contest.kind == contests.LINEAR else "",
            "ranks": contest.where,
            "threads_per_rank": "one thread a rank" if contest["threads_per_rank"] == 1 else "",
            "cadence": "" if contest["cadence"] == "isolated" else f"{contest['cadence']} rounds",
            "wire_dtype": "" if contest.wire == "f32" else f"{contest.wire} on the wire"}


def heads(contest):
    """The heads of a layer in words, such as `16 heads of 128`."""
    on = f" on {contest['kv_heads']}" if contest["kv_heads"] else ""
    width = contest["d_k"] if contest["d_k"] == contest["d_v"] else f"{contest['d_k']} x {contest['d_v']}"
    return f"{contest['heads']}{on}{' latent' * contest['latent']} {'head' if (contest['kv_heads'] or contest['heads']) == 1 else 'heads'} of {width}"


def passes(way):
    return "both passes" if way == "both" else f"{way} pass"


def note_differences(found):
    """Notes at each contest in which axes it differs from others of the same work that the same machine ran."""
    groups = collections.defaultdict(list)
    for one in found:
        groups[work(one), one.run_by, one.group.topology, one.group.machine].append(one)
    for group in groups.values():
        apart = tuple(axis for axis in axes_of(group) if len({value_of(one, axis) for one in group}) > 1)
        for one in group:
            one.apart = tuple(axis for axis in apart if axis != "rounds") or apart  # rounds only where nothing else differs
    return found
