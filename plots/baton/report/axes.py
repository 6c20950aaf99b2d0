# SPDX-License-Identifier: Apache-2.0
"""What contests have in common and where they differ, in words: titles of figures, headings and columns of tables."""

from baton import schema, words
from baton.report import contests

# The axes that a heading or a column may name, in that order. Any other axis with a number is named where it differs.
AXES = ("ranks", "state_bytes", "tokens", "packed", "pass", "direction", "map", "cadence", "heads", "kv_heads", "latent",
        "d_k", "d_v", "dtype", "kernel", "wire_dtype", "gate", "gates", "chunk", "groups", "ranks_a_node", "ranks_per_gpu",
        "rounds")
TITLES = {"state_bytes": "size", "packed": "documents of", "direction": "direction", "map": "maps", "kv_heads": "heads of keys",
          "latent": "keys", "wire_dtype": "wire", "ranks_a_node": "ranks a node", "ranks_per_gpu": "ranks a GPU"}
VALUES = {"state_bytes": words.size, "packed": lambda mean: str(mean or "all tokens"),
          "kv_heads": lambda count: str(count or "all"), "latent": lambda latent: "latent" if latent else "with values"}
# Those that tables always show.
ALWAYS = {"collective": ("ranks", "state_bytes"), "operator": ("ranks", "tokens", "pass"), "model": ("ranks", "tokens")}
OF_LAYERS, OF_EXCHANGES = ("pass", "dtype", "kernel"), ("direction", "map")
OF_A_MODEL = ("layers", "width")  # that its name in words has


def title_of(axis):
    return TITLES.get(axis) or schema.FIELDS[axis]["title"] or axis


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
    return [*AXES, *(axis for axis in parts if axis not in (*AXES, *OF_A_MODEL, "warmup"))]


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
    layer = f"model {contest.model}" if contest.is_model else f"layer of {contest.kind} attention"
    what = layer if contest.is_layer else contests.WORDS_OF_KINDS.get(contest.kind, contest.kind)
    return what[0].upper() + what[1:]


def heading(contest, *without):
    """The title of a figure: the work and its shape, without the axes named."""
    return ("~ " if contest.group.topology else "") + ", ".join(filter(None, (work(contest), shape(contest, *without))))


def importance(contest):
    """Orders figures and tables: what the answer is about first, measured before simulated, GPUs before processors."""
    answered = contests.LINEAR if contest.is_layer else contests.SCAN
    return (contest.kind != answered, not contest.is_layer and schema.is_said(contest.record, "map"), contest.wire != "f32",
            contest["cadence"] != "isolated", not contest.on_gpus, not contest.is_layer and contest.way != "forward",
            bool(contest.group.topology), contest.way != "both", -contest["ranks"])


def shape(contest, *without):
    """The shape of the contest in words, without the axes named."""
    tokens = value_of(contest, "tokens")
    parts = {"ranks": words.count(contest["ranks"], "GPU" if contest.on_gpus else "rank"),
             "state_bytes": "" if contest.is_layer else f"{words.size(contest['state_bytes'])} of state",
             "tokens": f"{tokens} tokens a rank" if tokens else "",
             "heads": contest.heads if contest.is_layer else "",
             "dtype": contest.dtype, "way": way(contest), "cadence": "" if contest["cadence"] == "isolated" else contest["cadence"],
             "gate": "no gates" if contest["gate"] == "none" and contest.kind == contests.LINEAR else "",
             "wire": "" if contest.wire == "f32" else f"{contest.wire} on the wire"}
    return ", ".join(part for name, part in parts.items() if part and name not in without)


def way(contest):
    if contest.is_layer:
        return contests.passes(contest.way)
    return "" if contest.way == "forward" else contest.way
