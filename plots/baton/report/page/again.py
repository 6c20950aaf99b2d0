# SPDX-License-Identifier: Apache-2.0
"""The command that runs a record's case again, alone."""

import pathlib
import shlex

from baton import results, schema
from baton.report.rows import AUTO

TOPOLOGIES = pathlib.Path(__file__).resolve().parents[4] / "topologies"

# Keys of records and the flags that ask for them: of both benches, of exchanges, of layers.
BOTH = (("executor", "--executor"), ("ranks", "--ranks"), ("heads", "--heads"), ("d_k", "--d-k"), ("d_v", "--d-v"),
        ("cadence", "--cadence"))
EXCHANGE = (("direction", "--direction"), ("map", "--map"), ("tokens", "--tokens"))
LAYER = (("pass", "--pass"), ("mode", "--mode"), ("tokens", "--tokens"), ("packed", "--packed"), ("chunk", "--chunk"), ("dtype", "--dtype"),
         ("kernel", "--kernel"), ("kv_heads", "--kv-heads"), ("groups", "--groups"), ("gates", "--gates"), ("scan", "--scan"))
MODEL = (("model", "--model"), ("layers", "--layers"), ("width", "--width"), ("line", "--lines"), ("tokens", "--tokens"),
         ("chunk", "--chunk"), ("groups", "--groups"))
BESIDE = (("sharded weights", "--fsdp"), ("head", "--head"), ("optimizer", "--optimizer"))
BENCH_WORDS = {"collective": [], "operator": ["operator"], "model": ["model"]}
SET_BY_MLA = ("kv_heads", "d_k", "d_v")


def command(record, *more):
    """Returns a line for a shell, with the words `more` at its end."""
    return shlex.join(["./run", "bench", *BENCH_WORDS[record["bench"]], *arguments(record, *more)])


def program(record):
    return f"{record['bench']}_bench"


def is_layer(record):
    return record["bench"] == "operator"


def arguments(record, *more):
    """Returns the words that a bench takes for the record's case, with the words `more` at their end."""
    if record["bench"] == "model":
        return [*of_model(record), *more]
    words = ["--methods" if is_layer(record) else "--collectives", record["name"]]
    latent = schema.value(record, "latent")
    for key, flag in (*BOTH, *(LAYER if is_layer(record) else EXCHANGE)):
        if latent and key in SET_BY_MLA:
            continue
        if record.get(key) not in (None, ""):
            words += [flag, str(record[key])]
    if latent:
        words += ["--mla", f"{record['d_v']},{record['d_k'] - record['d_v']}"]
    if is_layer(record) and record["attention"] in results.DELTA_RULE:
        words += ["--attention", record["attention"]]
    elif record.get("gate") == "scalar":
        words += ["--gate", "scalar"]
    return [*words, *of_machine(record), *more]


def of_model(record):
    """The same for a model, whose data-parallel line needs no method."""
    words = ["--methods", record["name"]] if record["line"] != "dp" else []
    for key, flag in (*BOTH, *MODEL):
        words += [flag, str(record[key])]
    if record["line"] == "full" and record["scan"]:
        words += ["--scan", record["scan"]]
    return [*words, *(flag for word, flag in BESIDE if word in record["beside"].split(", ")), *of_machine(record)]


def of_machine(record):
    """The words for the machine of any case and for its blocks."""
    words = []
    if record.get("ranks_a_node"):
        words += ["--ranks-per-node", str(record["ranks_a_node"])]
    if record.get("ranks_per_gpu", 1) > 1:
        words += ["--ranks-per-gpu", str(record["ranks_per_gpu"])]
    if str(record.get("blocks_asked", AUTO)) not in (AUTO, "1"):
        words += ["--blocks", str(record["blocks_asked"])]
    if record["executor"] == results.SIMULATOR:
        words += ["--topology", topology(record["topology"])]
    return words


def topology(name):
    """The file of a topology: one of topologies/, or what ./run bench made of this machine's calibration."""
    known = TOPOLOGIES / f"{name}.json"
    return f"topologies/{known.name}" if known.is_file() else "results/local/machine.json"
