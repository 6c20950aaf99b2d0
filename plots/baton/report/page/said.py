# SPDX-License-Identifier: Apache-2.0
"""What contests have in common and where they differ, in words: titles of figures, headings and columns of tables."""

from baton import words
from baton.report import contests

# The fields of a contest's key that a heading or a column may name, in that order: (field, title, words of a value).
FIELDS = (("ranks", "P", str), ("state_bytes", "size", words.size), ("tokens", "tokens", str),
          ("packed", "documents of", lambda mean: str(mean or "all tokens")),
          ("way", "way", str), ("map", "maps", str), ("cadence", "cadence", str), ("heads", "heads", str),
          ("kv_heads", "heads of keys", lambda count: str(count or "all")),
          ("latent", "keys", lambda latent: "latent" if latent else "with values"), ("d_k", "d_k", str),
          ("d_v", "d_v", str), ("dtype", "dtype", str), ("kernel", "kernel", str),
          ("wire", "wire", str), ("gate", "gate", str),
          ("gates", "gates", str), ("chunk", "chunk", str), ("groups", "groups", str),
          ("ranks_a_node", "ranks a node", str), ("ranks_a_gpu", "ranks a GPU", str),
          ("rounds", "rounds", lambda both: f"{both[0]}+{both[1]}"))
ALWAYS = {"collective": ("ranks", "state_bytes"), "operator": ("ranks", "tokens", "way"), "model": ("ranks", "tokens")}  # that tables show
UNSAID = ("", 0, None, contests.DIAGONAL)


def titles_of(field, is_layer):
    title = next(title for name, title, _ in FIELDS if name == field)
    return {"way": "pass" if is_layer else "direction"}.get(field, title)


def value(key, field):
    """The value of a key's field as text."""
    of_field = getattr(key, field)
    return next(tell for name, _, tell in FIELDS if name == field)(of_field)


def columns(keys):
    """The fields that a table of these contests has columns for: what differs, and what a reader looks for."""
    bench = keys[0].bench
    varying = {name for name, *_ in FIELDS if len({getattr(key, name) for key in keys}) > 1}
    if bench == "collective":
        varying -= {"heads"}
    return [name for name, *_ in FIELDS if name in varying or name in ALWAYS[bench]]


def constants(keys, shown):
    """What all these contests share and no column says, as text."""
    key = keys[0]
    told = [f"{titles_of(name, key.bench in contests.METHODS)} {value(key, name)}" for name, *_ in FIELDS
            if name not in shown and getattr(key, name) not in UNSAID and not (
                name == "ranks_a_gpu" and key.ranks_a_gpu <= 1 or key.bench == "collective" and name == "heads"
                and len({one.heads for one in keys}) > 1)]
    return ", ".join(told)


def subject(key):
    """Who competes, in words: "Exclusive scan on GPUs, NVIDIA H200"."""
    if key.topology:
        return f"~ {work(key)}, simulated: {key.topology}"
    return f"{work(key)} on {key.family}" + (f", {key.machine}" if key.machine else "")


def work(key):
    what = f"model {key.model}" if key.model else f"layer of {key.kind} attention" if key.bench == contests.LAYER else contests.WORDS_OF_KINDS.get(key.kind, key.kind)
    return what[0].upper() + what[1:]


def heading(key, *without):
    """The title of a figure: the work and its shape, without the fields named."""
    return ("~ " if key.topology else "") + ", ".join(filter(None, (work(key), shape(key, *without))))


def importance(key):
    """Orders figures and tables: what the answer is about first, measured before simulated, GPUs before processors."""
    answered = contests.LINEAR if key.bench in contests.METHODS else contests.SCAN
    return (key.kind != answered, key.map not in ("", contests.DIAGONAL), key.wire != "f32", key.cadence != "isolated", key.family != contests.GPU,
            key.bench == "collective" and key.way != "forward", bool(key.topology), key.way != "both", -key.ranks)


def shape(key, *without):
    """The shape of the contest in words, without the fields named."""
    parts = {"ranks": f"{key.ranks} {'GPU' if key.family == contests.GPU else 'rank'}{'s' if key.ranks != 1 else ''}",
             "state_bytes": f"{words.size(key.state_bytes)} of state" if key.bench == "collective" else "",
             "tokens": f"{key.tokens} tokens a rank" if key.tokens else "",
             "heads": contests.heads_of(key) if key.bench in contests.METHODS else "",
             "dtype": key.dtype, "way": way(key), "cadence": "" if key.cadence == "isolated" else key.cadence,
             "gate": "no gates" if key.gate == "none" and key.kind == contests.LINEAR else "",
             "wire": "" if key.wire == "f32" else f"{key.wire} on the wire"}
    return ", ".join(part for name, part in parts.items() if part and name not in without)


def way(key):
    if key.bench in contests.METHODS:
        return contests.passes(key.way)
    return "" if key.way == "forward" else key.way
