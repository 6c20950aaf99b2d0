# SPDX-License-Identifier: Apache-2.0
"""Reads the suite's records (JSON lines) and picks what a table or figure shows.

Files are append-only, so one case may stand in them many times: its newest run counts, all launches of it together.
Records compete if they are of one group: those with the same text at the key `contest`, on one machine. A rival is what differs within a group.
"""

import collections
import functools
import statistics
import sys

from baton import checks, estimates, kept, schema
from baton.checks import ResultsError
from baton.upgrade import renamed, upgraded

NEEDED = ("bench", "name", "implementation", "executor", "ranks", "heads", "d_k", "d_v", "tokens",
          "state_bytes", "blocks", "cadence", "warmup", "rounds", "machine", "commit", "time", "run")
ENDED_WELL = (0, 6)  # exit codes of a bench that has written its records: it timed rows, or skipped them all
SIMULATOR = "simulator"  # the executor of rows that were computed, not measured
PEER_NEEDED = ("peer", "version", "kernel", "pass", "tokens", "heads", "d_k", "d_v", "dtype", "median_seconds", "gpu",
               "time")
NEEDED_IF_TIMED = ("mean_seconds", "median_seconds", "ci95_seconds")
NEEDED_ON_GPUS = ("bound_seconds", "alpha_seconds", "beta_bytes_per_second", "hops", "sent_bytes")

# The keys of the records of each bench beside NEEDED.
BENCHES = {"collective": ("kind", "direction"),
           "operator": ("pass", "mode", "gate", "gates", "chunk", "groups", "scan"),
           "model": ("model", "line", "layers", "width", "beside", "gate", "gates", "chunk", "groups", "scan")}
OF_METHODS = ("operator", "model")  # the benches of methods: one layer, and a model of some
FOR_CHECKS = ("local", "local_bf16")  # the executors that run all ranks in one process, so that times are no measure
DELTA_RULE = ("gdn", "kda", "deltanet", "rwkv7")  # whose maps have matrices

# What records that compete share: `axes` is the bench's text of their axes, which names neither the machine nor where on it ranks lie.
Group = collections.namedtuple("Group", "axes topology host machine ranks_per_node placement")
# In what records of one group differ; `mode` and `scan` are empty for exchanges.
Rival = collections.namedtuple("Rival", "name executor implementation mode scan shares blocks")


def load(paths, *benches):
    """Returns the records of these benches in these files, bench by bench, each oldest line first. Throws ResultsError."""
    records = kept.Records()
    found = [records.add(_checked(record, where)) for path in paths for record, where in _lines(path)
             if "peer" not in record and record["bench"] in (benches or BENCHES)]
    return sorted(found, key=lambda record: list(BENCHES).index(record["bench"]))


def load_peers(paths):
    """Returns the measurements of other projects' kernels, the lines of peers.jsonl. Throws ResultsError."""
    return [checks.check(record, PEER_NEEDED, where)
            for path in paths for record, where in _lines(path) if "peer" in record and "collective" not in record]


def _lines(path):
    first, torn = "", 0
    for record, where in checks.json_lines(path):
        if record is checks.NO_JSON:
            first, torn = first or where, torn + 1
            continue
        if not isinstance(record, dict):
            raise ResultsError(f"{where}: a record is an object, this is {checks.shown(record)}")
        if "peer" not in record and not checks.is_text(record.get("bench")):
            raise ResultsError(f"{where}: bench: expected one line of text, found {checks.shown(record.get('bench'))}")
        yield renamed(record), where
    _say_what_is_left_out(path, first, torn)


@functools.cache  # each bench reads the file anew
def _say_what_is_left_out(path, first, torn):
    """Says which lines are no records. A run that was killed may leave half a line; the lines around it stay usable."""
    if torn == 1:
        print(f"{first}: not a whole record, left out", file=sys.stderr)
    if torn > 1:
        print(f"{path}: {torn} lines are not whole records, left out; the first is line {first.rpartition(':')[2]}", file=sys.stderr)


def _checked(record, where):
    needed = NEEDED + BENCHES[record["bench"]]
    if "contest" in record:
        needed += ("family",) if record["bench"] == "collective" else ("family", "attention", "dtype")
    needed += ("topology",) if record.get("executor") == SIMULATOR else ()
    if "skipped" not in record and "failed" not in record:
        needed += ("wrong",)
        needed += () if record.get("wrong") else NEEDED_IF_TIMED
        needed += NEEDED_ON_GPUS if record.get("device") and not record.get("wrong") else ()
    return upgraded(checks.check(record, needed, where))


def group_of(record):
    """Returns the Group of a record."""
    if is_simulated(record):  # on the machine of its topology, wherever it was computed
        return Group(record["contest"], record["topology"], "", "", schema.value(record, "ranks_per_node"), "")
    return Group(record["contest"], "", record["machine"].get("host", ""), machine_of(record),
                 schema.value(record, "ranks_per_node"), record.get("hosts", {}).get("placement", ""))


def alike(record, *free):
    """Returns what records share that differ in these axes alone, as the Group of a record without them.

    Where `ranks_per_node` is among them, the record may lie anywhere on the hosts.
    """
    group, parts = group_of(record), record["contest"].split("/")
    for key in free:
        with_key = f"{key}:{record.get(key)}"
        # Numbers have their key before them. A text may have none, and is then one part, however many others read alike.
        part = record.get(key) if with_key not in parts and schema.FIELDS[key]["type"] == "text" else with_key
        if part in parts:
            parts.remove(part)
    group = group._replace(axes="/".join(parts))
    return group._replace(ranks_per_node=0, placement="") if "ranks_per_node" in free else group


def machine_of(record):
    """What measured the record: the GPU's name, or the processor's."""
    return record.get("device", {}).get("gpu") or record["machine"].get("cpu", "unknown machine")


def rival(record):
    """Returns the Rival of a record."""
    return Rival(record["name"], record["executor"], record["implementation"], record.get("mode", ""), record.get("scan", ""),
                 schema.value(record, "shares"), str(record.get("blocks_asked", record["blocks"])))


def newest(records):
    """Returns a record of each case: of its newest run, over that run's launches."""
    cases = collections.defaultdict(list)
    for record in records:
        cases[group_of(record), rival(record)].append(record)
    # ISO 8601 in UTC sorts as text; a later line wins a tie, and sorting keeps the order of lines.
    return [_of_newest_run(sorted(found, key=lambda record: record["time"])) for found in cases.values()]


def _of_newest_run(records):
    """The last record, with the estimates of all launches of its run; a launch without a time stands for all."""
    launches = {record.get("launch", 1): record for record in records if record["run"] == records[-1]["run"]}
    if len(launches) == 1:
        return records[-1]
    without = [record for record in launches.values() if why_no_time(record)]
    if without:
        return without[0]
    last, medians = launches[max(launches)], [record["median_seconds"] for record in launches.values()]
    over = {"mean_seconds": statistics.fmean(record["mean_seconds"] for record in launches.values()),
            "median_seconds": estimates.mean(medians)}
    if not is_simulated(last):
        over["ci95_seconds"] = list(estimates.mean_interval(medians))
    bounds = [record.get("bound_seconds") for record in launches.values()]
    if all(bounds):
        over["bound_seconds"] = estimates.mean(bounds)
    # What the bench formed with other rows counts if it is of the same launches.
    of_run = last.get("over_launches", {})
    is_of_all = of_run.get("launches") == len(launches)
    known = {key: of_run.get(key) if is_of_all else None for key in ("ratio", "ratio_ci95", "ratio_to", "hidden") if key in last}
    return {**last, **over, **known}


def is_build_known(record):
    """True if records with the commit of this one are of the same build. Of a changed tree a digest tells which it was,
    which old records lack."""
    return record["commit"] != "unknown" and not record["commit"].endswith("-dirty")


def kv_heads(record):
    """Returns the heads of keys and values, which a record names where they are not those of queries."""
    return schema.value(record, "kv_heads") or record["heads"]


def is_simulated(record):
    return record["executor"] == SIMULATOR


def points(records, key_of):
    """Returns {key_of(record): record}. Of several block counts it takes `auto`, or else the fastest."""
    best = {}
    for record in records:
        where = key_of(record)
        if where not in best or _preference(record) < _preference(best[where]):
            best[where] = record
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
    if schema.value(record, "ranks_per_gpu") > 1:
        return f"{record['ranks_per_gpu']} ranks share a GPU, which measures no link"
    return wrong_in_words(record) if record["wrong"] else None


def wrong_in_words(record):
    """How much of a record is wrong, elements of an exchange or tensors of a layer, and the first of it if it is said."""
    what = "element" if record["bench"] == "collective" else "tensor"
    first = f": {record['first_wrong']}" if record.get("first_wrong") else ""
    return f"{record['wrong']} wrong {what}{'s' * (record['wrong'] != 1)}{first}"


def crowded(record):
    """Returns why a measurement is none of the exchange: ranks that shared cores or a GPU. Nothing if they did not."""
    if is_oversubscribed(record):
        return "oversubscribed"
    shared = record.get("ranks_per_gpu") or 1
    return f"{shared} ranks on a GPU" if shared > 1 else ""


def is_oversubscribed(record):
    """True if the record's ranks had more busy threads than cores.

    Records from before `conditions` are judged by the cores of the machine: a rank of a layer on processors has two
    busy threads, any other rank one.
    """
    if record["executor"] in (SIMULATOR, *FOR_CHECKS):
        return False
    conditions = record.get("conditions") or {}
    if "oversubscribed" in conditions:
        return conditions["oversubscribed"]
    threads = record["ranks"] * (2 if record["bench"] in OF_METHODS and not record.get("device") else 1)
    return threads > record["machine"].get("cores", threads)
