# SPDX-License-Identifier: Apache-2.0
"""Contests: the rows of one session that compete with one another, since they differ in the algorithm alone.

Measured and simulated rows never share a contest, nor do softmax attention, linear attention and those of
a delta rule, or wires of unlike elements.
"""

import collections

from baton import captions, cases, results
from baton.report.rows import AUTO, COMPUTE_ONLY, LOCAL, OVERLAPPED, Row, row_name

CPU, GPU = "processors", "GPUs"
# Executors that compete with one another; any other one competes with itself, as in the benches.
FAMILIES = {"mpi": CPU, "nccl": GPU, "peer": GPU, "peer_fenced": GPU, "peer_bf16": GPU}
FOR_CHECKS = ("local", "local_bf16")  # the executors that run all ranks in one process, so that times are no measure
SCAN = "exclusive_scan"
MOVE_TOKENS = ("exchange", "all_to_all", "to_zigzag")  # the kinds of collectives whose time depends on the tokens
LINEAR, SOFTMAX = "linear", "softmax"
LAYER, MODEL = METHODS = ("operator", "model")  # the benches of methods: one layer, and a model of some
DIAGONAL = "diagonal"  # the kind of maps that an exchange has unless a record says another
WORDS_OF_KINDS = {SCAN: "exclusive scan", "all_gather": "all-gather of the maps",
                  "reduce_scatter": "reduce-scatter of what is as large as the maps",
                  "exchange": "exchange of keys and values", "all_to_all": "all-to-all of heads and tokens",
                  "to_zigzag": "hidden states from contiguous to zigzag tokens"}

# What the rows of a contest share. `family` says by whom they ran, `kind` is that of a collective and the attention of
# a layer, `way` the direction or the pass, `map` the kind of an exchange's maps. `kv_heads` is 0 where they are as many
# as `heads`. `latent` keys hold their values. `packed` is the mean length of packed documents, 0 for one document.
# `kernel` says who computes softmax blocks. `topology` is empty for what was measured, `model` but for models.
Key = collections.namedtuple("Key", (
    "bench", "family", "topology", "host", "machine", "ranks", "ranks_a_node", "ranks_a_gpu", "kind", "way", "map",
    "cadence", "heads", "kv_heads", "latent", "d_k", "d_v", "state_bytes", "tokens", "packed", "dtype", "kernel", "wire", "gate", "gates",
    "chunk", "groups", "rounds", "model"), defaults=("",))


class Contest:
    """The rows of one contest, the timed ones first and the fastest of them at the top."""

    def __init__(self, key, rows):
        self.key = key
        self.rows = sorted(rows, key=lambda row: (not row.is_timed, row.median or 0, row.name))

    @property
    def is_simulated(self):
        return self.key.family == results.SIMULATOR

    @property
    def is_layer(self):
        """True if methods compete, in one layer or in a model."""
        return self.key.bench in METHODS

    @property
    def is_model(self):
        return self.key.bench == MODEL

    @property
    def is_oversubscribed(self):
        """True if the ranks had fewer cores than busy threads, so that the times compare nothing."""
        return any(map(is_oversubscribed, self.records))

    @property
    def counts(self):
        """True if the contest says something of this machine's links, or of a simulated machine's."""
        return self.key.family not in FOR_CHECKS and not self.is_oversubscribed and self.key.ranks_a_gpu <= 1

    @property
    def records(self):
        return [record for row in self.rows for record in row.records]

    @property
    def competitors(self):
        """The timed rows that are ranked, the fastest first: one of each algorithm on each executor.

        Of a layer these are the methods as they were published. Where the model chose a row's blocks, the rows of the
        same name with other numbers of blocks show what the choice is worth, and are not ranked.
        """
        chosen = {row.name[:-1] for row in self.rows if row.name.blocks == AUTO and row.is_timed}
        return [row for row in self.rows if row.is_timed and row.name.mode in ("", OVERLAPPED)
                and (row.name.blocks == AUTO or row.name[:-1] not in chosen)]

    @property
    def best(self):
        """The competitor with the least time, or None. Whether another one may be as fast is ranking.py's to say."""
        return next(iter(self.competitors), None)

    def label_of(self, row):
        """The row's name, with what tells it from the other rows: native, exchange of states, blocks, executor."""
        name, others = row.name, [other.name for other in self.rows if other.is_timed]
        alike = [other for other in others if other.name == name.name]
        told = [name.implementation] * (name.implementation not in ("schedule", name.name))
        told += [name.scan] * (len({other.scan for other in alike if other.scan}) > 1 and bool(name.scan))
        told += [f"K={name.blocks}"] * (name.blocks != AUTO and len({other.blocks for other in alike}) > 1)
        where = f" on {name.executor}" if len({other.executor for other in others}) > 1 else ""
        return f"{name.name} ({', '.join(told)}){where}" if told else f"{name.name}{where}"

    def beside(self, row, mode):
        """The timed row of the same method in another mode, or None."""
        same = [other for other in self.rows if other.is_timed and other.name.mode == mode
                and (other.name.name, other.name.executor) == (row.name.name, row.name.executor)
                and other.name.scan in (row.name.scan, "")]
        return min(same, key=lambda other: (other.name.blocks != row.name.blocks, other.name.blocks != AUTO),
                   default=None)

    def local_of(self, row):
        """The timed layer without any exchange on the same executor, or None."""
        return next((other for other in self.rows if other.is_timed and other.name.name == LOCAL
                     and other.name.executor == row.name.executor), None)

    @property
    def local_rows(self):
        """The timed rows of local work alone: `local`, and every method without its exchange."""
        return [row for row in self.rows if row.is_timed and (row.name.mode == COMPUTE_ONLY or row.name.name == LOCAL)]

    @property
    def lost(self):
        """The rows that failed or are wrong; skipped rows could not run here, which is no failure."""
        return [row for row in self.rows if row.state in (cases.FAILED, cases.WRONG)]

    @property
    def label(self):
        """The contest in words."""
        key = self.key
        words = [f"~ simulated: {key.topology}"] if self.is_simulated else []
        if self.is_layer:
            words += [key.model or f"{key.kind} layer", passes(key.way),
                      f"{key.tokens} tokens a rank", *([f"packed documents of {key.packed}"] if key.packed else []),
                      heads_of(key), key.dtype]
        else:
            words += [WORDS_OF_KINDS.get(key.kind, key.kind), *([key.way] if key.way != "forward" else []),
                      *([f"{key.map} maps"] if key.map != DIAGONAL else []), captions.binary_size(key.state_bytes)]
        words += [self.where, key.cadence, *([f"{key.wire} on the wire"] if key.wire != "f32" else [])]
        return ", ".join(words)

    @property
    def where(self):
        """The ranks in words, such as `2 GPUs` or `4 ranks on processors`."""
        if self.key.family == GPU and self.key.ranks_a_gpu <= 1:
            return f"{self.key.ranks} {GPU if self.key.ranks > 1 else 'GPU'}"
        ranks = f"{self.key.ranks} {'ranks' if self.key.ranks > 1 else 'rank'}"
        return ranks if self.is_simulated else f"{ranks} on {self.key.family}"


def heads_of(key):
    """The heads of a layer in words, such as `16 heads of 128`."""
    on = f" on {key.kv_heads}" if key.kv_heads else ""
    return f"{key.heads}{on}{' latent' * key.latent} heads of {key.d_k}"


def passes(way):
    return "both passes" if way == "both" else f"{way} pass"


def contests_of(records):
    """Returns the contests of these records, those with most ranks first. Each record belongs to one contest."""
    groups = collections.defaultdict(lambda: collections.defaultdict(cases.Case))
    for record in records:
        groups[key_of(record)][row_name(record)].add(record)
    contests = [Contest(key, [Row(name, case) for name, case in cases.items()]) for key, cases in groups.items()]
    return sorted(contests, key=lambda one: (one.is_simulated, one.key.bench, -one.key.ranks, tuple(map(str, one.key))))


def key_of(record):
    executor, machine = record["executor"], record["machine"]
    simulated = executor == results.SIMULATOR
    return Key(record["bench"], FAMILIES.get(executor, executor), record["topology"] if simulated else "",
               "" if simulated else machine.get("host", ""), "" if simulated else machine_of(record),
               record["ranks"], record.get("ranks_a_node", 0), record.get("ranks_per_gpu", 1), *_work(record))


def _work(record):
    """The part of a key that says what was done."""
    is_layer = record["bench"] in METHODS
    kind = results.attention(record) if is_layer else record["kind"]
    tokens = record["tokens"] if is_layer or kind in MOVE_TOKENS else 0
    wire = record.get("wire_dtype") or ("bf16" if record["executor"].endswith("_bf16") else "f32")
    return (kind, record["pass"] if is_layer else record["direction"], "" if is_layer else results.map_kind(record),
            record["cadence"],
            record["heads"], record.get("kv_heads", 0), results.latent(record), record["d_k"], record["d_v"],
            record["state_bytes"], tokens, results.packed(record),
            results.dtype(record) if is_layer else "", results.kernel(record) if is_layer else "", wire,
            record.get("gate", "") if is_layer else "", record.get("gates", ""), record.get("chunk", 0), record.get("groups", 0),
            (record["warmup"], record["rounds"]), captions.model_words(record) if record["bench"] == MODEL else "")


def machine_of(record):
    """What measured the record: the GPU's name, or the processor's."""
    return record.get("device", {}).get("gpu") or record["machine"].get("cpu", "unknown machine")


def is_oversubscribed(record):
    """True if the record's ranks had more busy threads than cores.

    Records from before `conditions` are judged by the cores of the machine: a rank of a layer on processors has two
    busy threads, any other rank one.
    """
    if record["executor"] in (results.SIMULATOR, *FOR_CHECKS):
        return False
    if "oversubscribed" in record.get("conditions", {}):
        return record["conditions"]["oversubscribed"]
    threads = record["ranks"] * (2 if record["bench"] in METHODS and FAMILIES.get(record["executor"]) != GPU else 1)
    return threads > record["machine"].get("cores", threads)
