# SPDX-License-Identifier: Apache-2.0
"""The command that runs a record's case again, alone."""

import pathlib
import shlex

from baton import results, schema
from baton.report.comparisons import LINEAR, SOFTMAX
from baton.report.rows import AUTO

TOPOLOGIES = pathlib.Path(__file__).resolve().parents[3] / "topologies"

NOT_OF_A_CASE = ("state_bytes", "peak_flops", "cycle", "warmup", "rounds", "baseline", "seed")
# The axes that a bench makes of others, so that it has no flag for them.
MADE = {"collective": (), "operator": ("direction",),
        "model": ("mode", "direction", "attention", "gate", "gates", "kv_heads")}
SET_BY_MLA = ("kv_heads", "d_k", "d_v")
BESIDE = ("sharded weights", "head", "optimizer")  # in the order of their flags
BENCH_WORDS = {"collective": [], "operator": ["operator"], "model": ["model"]}


def command(record, *more):
    """Returns a line for a shell, with the words `more` at its end."""
    return shlex.join(["./run", "bench", *BENCH_WORDS[record["bench"]], *arguments(record, *more)])


def program(record):
    return f"{record['bench']}_bench"


def arguments(record, *more):
    """Returns the words that a bench takes for the record's case, with the words `more` at their end."""
    words = []
    for axis, field in schema.FIELDS.items():
        if field["role"] == "axis" and field["flag"] and is_asked(record, axis):
            words += words_of(record, axis, field["flag"].split(", "))
    return [*words, *(["--topology", topology(record["topology"])] if results.is_simulated(record) else []), *more]


def is_asked(record, axis):
    """True if the flag of an axis asks for the record's case, which would be another one without it."""
    value = record.get(axis)
    is_made = (axis in NOT_OF_A_CASE or axis in MADE[record["bench"]] or axis in SET_BY_MLA and schema.value(record, "latent")
               or axis == "tokens" and schema.value(record, "sequence"))
    is_default = {"blocks_asked": str(value) in (AUTO, "1"), "attention": value in (LINEAR, SOFTMAX),
                  "name": record.get("line") == "dp",
                  "gate": value == "none" or record.get("attention") in results.DELTA_RULE}
    return not is_made and schema.is_said(record, axis) and not is_default.get(axis)


def words_of(record, axis, flags):
    if axis == "beside":
        return [flag for flag, word in zip(flags, BESIDE) if word in record["beside"].split(", ")]
    if axis == "latent":
        return [*flags, f"{record['d_v']},{record['d_k'] - record['d_v']}"]
    flag, *of_methods = flags
    return [of_methods[0] if of_methods and record["bench"] != "collective" else flag, str(record[axis])]


def topology(name):
    """The file of a topology: one of topologies/, or what ./run bench made of this machine's calibration."""
    known = TOPOLOGIES / f"{name}.json"
    return f"topologies/{known.name}" if known.is_file() else "results/local/machine.json"
