# SPDX-License-Identifier: Apache-2.0
"""Reads the suite's records (JSON lines) and picks what a table or figure shows.

Files are append-only, so one case may stand in them many times: its newest run counts, all launches of it together. A
*setting* is everything that must be equal before times may be compared, the numbers of rounds included, so that a quick
run never takes a full one's place; a *point* is what a table or figure has one place for in it.
"""

import collections
import functools
import json
import statistics
import sys

from baton import checks
from baton.checks import ResultsError

NEEDED = ("bench", "name", "implementation", "executor", "ranks", "heads", "d_k", "d_v", "tokens",
          "state_bytes", "blocks", "cadence", "warmup", "rounds", "machine", "commit", "time", "run")
ENDED_WELL = (0, 6)  # exit codes of a bench that has written its records: it timed rows, or skipped them all
SIMULATOR = "simulator"  # the executor of rows that were computed, not measured
PEER_NEEDED = ("peer", "version", "kernel", "pass", "tokens", "heads", "d_k", "d_v", "dtype", "median_seconds", "gpu",
               "time")
NEEDED_IF_TIMED = ("mean_seconds", "median_seconds", "ci95_seconds")
NEEDED_ON_GPUS = ("bound_seconds", "alpha_seconds", "beta_bytes_per_second", "hops", "sent_bytes")

# For each bench: the keys of its records beside NEEDED, and the fields that make a setting (beside the machine)
# and a point (beside the method).
Bench = collections.namedtuple("Bench", "needed setting point")
BENCHES = {
    "collective": Bench(
        needed=("kind", "direction"),
        setting=("kind", "map", "executor", "direction", "heads", "d_k", "d_v", "state_bytes", "tokens", "cadence",
                 "warmup", "rounds"),
        point=("ranks",)),
    # Methods without gates have the gate "none" beside others that have one, so a gate is no setting.
    "operator": Bench(
        needed=("pass", "mode", "gate", "gates", "chunk", "groups", "scan"),
        setting=("executor", "heads", "kv_heads", "latent", "d_k", "d_v", "packed", "chunk", "gates", "groups", "dtype",
                 "kernel", "cadence", "warmup", "rounds"),
        point=("attention", "gate", "scan", "tokens", "ranks", "pass", "mode")),
    # A line is the data-parallel one, a method without its exchange, or all of a method.
    "model": Bench(
        needed=("model", "line", "layers", "width", "beside", "gate", "gates", "chunk", "groups", "scan"),
        setting=("executor", "model", "layers", "width", "beside", "heads", "kv_heads", "d_k", "d_v", "chunk", "gates",
                 "groups", "dtype", "cadence", "warmup", "rounds"),
        point=("attention", "gate", "scan", "tokens", "ranks", "line"))}
SOFTMAX_METHODS = ("ring_attention_zigzag",)  # whose names do not say it, in records without the key `attention`
DELTA_RULE = ("gdn", "kda", "deltanet", "rwkv7")  # whose maps have matrices


def load(paths, bench="collective"):
    """Returns the records of one bench in these files, oldest line first. Throws ResultsError."""
    return [_checked(record, where) for path in paths for record, where in _lines(path)
            if "peer" not in record and record["bench"] == bench]


def load_peers(paths):
    """Returns the measurements of other projects' kernels, made by the scripts of peers/. Throws ResultsError."""
    return [checks.check(record, PEER_NEEDED, where)
            for path in paths for record, where in _lines(path) if "peer" in record and "collective" not in record]


def _lines(path):
    lines = list(checks.json_lines(path))
    _say_what_is_left_out(path, tuple(where for record, where in lines if record is None))
    for record, where in lines:
        if record is None:
            continue
        if not isinstance(record, dict):
            raise ResultsError(f"{where}: a record is an object, this is {checks.shown(record)}")
        if "peer" not in record and not checks.is_text(record.get("bench")):
            raise ResultsError(f"{where}: bench: expected one line of text, found {checks.shown(record.get('bench'))}")
        yield record, where


@functools.cache  # each bench reads the file anew
def _say_what_is_left_out(path, torn):
    """Says which lines are no records. A run that was killed may leave half a line; the lines around it stay usable."""
    if len(torn) == 1:
        print(f"{torn[0]}: not a whole record, left out", file=sys.stderr)
    if len(torn) > 1:
        print(f"{path}: {len(torn)} lines are not whole records, left out; the first is line {torn[0].rpartition(':')[2]}",
              file=sys.stderr)


def _checked(record, where):
    needed = NEEDED + BENCHES[record["bench"]].needed
    needed += ("topology",) if record.get("executor") == SIMULATOR else ()
    if "skipped" not in record and "failed" not in record:
        needed += ("wrong",)
        needed += () if record.get("wrong") else NEEDED_IF_TIMED
        needed += NEEDED_ON_GPUS if record.get("device") and not record.get("wrong") else ()
    return checks.check(record, needed, where)


def setting(record):
    # The machine of a simulated row is its topology, wherever it was computed.
    machine = (record["topology"] if record["executor"] == SIMULATOR
               else json.dumps(record["machine"], sort_keys=True))
    fields = BENCHES[record["bench"]].setting
    return (record["bench"], machine, record.get("ranks_per_gpu", 1),
            *(KNOWN[field](record) if field in KNOWN else record[field] for field in fields))


def dtype(record):
    """Returns the element type of the layer's tensors, which old records lack."""
    return record.get("dtype", "f32")


def kv_heads(record):
    """Returns the heads of keys and values, which a record names where they are not those of queries."""
    return record.get("kv_heads", record["heads"])


def latent(record):
    """Returns whether the values are the first channels of the keys, which a record says where it is so."""
    return record.get("latent", False)


def packed(record):
    """Returns the mean length of packed documents in tokens, which a record says where there are some, else 0."""
    return record.get("packed", 0)


def attention(record):
    """Returns what the layer computes: softmax, linear (gated linear attention), or a word of DELTA_RULE."""
    is_softmax = "softmax" in record["name"] or record["name"] in SOFTMAX_METHODS
    return record.get("attention") or ("softmax" if is_softmax else "linear")


def map_kind(record):
    """Returns the kind of an exchange's maps, which a record says where they are not diagonal."""
    return record.get("map", "diagonal")


def kernel(record):
    """Returns who computes softmax blocks, cudnn or our own kernels, as all others do."""
    return record.get("kernel", "own")


# Fields that a record may lack.
KNOWN = {"dtype": dtype, "kv_heads": kv_heads, "latent": latent, "packed": packed, "kernel": kernel,
         "map": map_kind, "attention": attention}


def point(record):
    fields = BENCHES[record["bench"]].point
    return (method(record), *(KNOWN[field](record) if field in KNOWN else record[field] for field in fields))


def newest(records):
    """Returns a record of each case: of its newest run, over that run's launches."""
    cases = collections.defaultdict(list)
    for record in records:
        cases[setting(record), point(record), str(record.get("blocks_asked", record["blocks"]))].append(record)
    # ISO 8601 in UTC sorts as text; a later line wins a tie, and sorting keeps the order of lines.
    return [_of_newest_run(sorted(found, key=lambda record: record["time"])) for found in cases.values()]


def _of_newest_run(records):
    """The last record, with medians over the launches of its run; a launch without a time stands for all."""
    launches = {record.get("launch", 1): record for record in records if record["run"] == records[-1]["run"]}
    if len(launches) == 1:
        return records[-1]
    without = [record for record in launches.values() if why_no_time(record)]
    if without:
        return without[0]
    over = {key: statistics.median(record[key] for record in launches.values())
            for key in ("median_seconds", "mean_seconds")}
    # The interval of the last launch, if it is there, covers all launches so far.
    told = launches[max(launches)].get("over_launches", {})
    known = {key: told[key] for key in ("ci95_seconds", "ratio", "ratio_ci95", "hidden") if key in told}
    return {**launches[max(launches)], **over, **known}


def is_simulated(record):
    return record["executor"] == SIMULATOR


def matching(records, **wanted):
    """Returns the records whose fields equal the wanted values. A value of None matches everything."""
    return [record for record in records
            if all(value is None or record[field] == value for field, value in wanted.items())]


def widest_setting(records):
    """Returns the records of the setting with most points, and among equals of the newest.

    Measured settings come before simulated ones, and ranks with a GPU each before ranks that share one, so what was
    computed or crowded never takes the place of what was measured.
    """
    groups = collections.defaultdict(list)
    for record in records:
        groups[setting(record)].append(record)

    def width(group):
        alone = group[0].get("ranks_per_gpu", 1) == 1
        return not is_simulated(group[0]), alone, len(points(group)), max(record["time"] for record in group)

    return max(groups.values(), key=width, default=[])


def points(records):
    """Returns {point: record}. Of several block counts it takes `auto`, or else the fastest."""
    best = {}
    for record in records:
        place = point(record)
        if place not in best or _preference(record) < _preference(best[place]):
            best[place] = record
    return best


def _preference(record):
    return (why_no_time(record) is not None, record.get("blocks_asked") != "auto",
            record.get("median_seconds", 0))


def method(record):
    """Returns the registered name, followed by the native that ran instead if one did."""
    name, implementation = record["name"], record["implementation"]
    return name if implementation in ("schedule", name) else f"{name} ({implementation})"


def why_no_time(record):
    """Returns why the record has no time, or None if it has one. The times of wrong results do not count."""
    if "failed" in record:
        return f"failed: {record['failed']}"
    if "skipped" in record:
        return record["skipped"]
    if record.get("ranks_per_gpu", 1) > 1:
        return f"{record['ranks_per_gpu']} ranks share a GPU, which measures no link"
    return f"{record['wrong']} wrong elements" if record["wrong"] else None


def crowded(record):
    """Returns why a measurement is none of the exchange: ranks that shared cores or a GPU. Nothing if they did not."""
    if (record.get("conditions") or {}).get("oversubscribed"):
        return "oversubscribed"
    shared = record.get("ranks_per_gpu") or 1
    return f"{shared} ranks on a GPU" if shared > 1 else ""
