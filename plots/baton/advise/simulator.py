# SPDX-License-Identifier: Apache-2.0
"""Simulates what a question asks with the benches, as their schedules run, and reads the records."""

import collections
import json
import os
import pathlib
import subprocess
import tempfile

from baton import files, results, stacks
from baton.operators import is_softmax
from baton.upgrade import renamed

FREE = {"latency_seconds": 0, "overhead_seconds": 0, "bytes_per_second": 1e18}  # a link that takes no time
KEPT = ("moved_by", "source")  # the keys of a link that say nothing of its time

# A layer on a machine. `tokens` are those of a rank; `kv_heads` are those of softmax layers, None for as many as `heads`;
# `attention` is the kind of linear layers, a word of operator_bench.
Question = collections.namedtuple("Question", "topology tokens heads kv_heads width ranks dtype which attention",
                                  defaults=("linear",))


class Refused(results.ResultsError):
    """What was asked has no answer; the text says why in one line."""


class Simulator:
    """Runs the benches of the folder `programs` on the topology of a question."""

    def __init__(self, programs, question):
        self.programs, self.question = programs, question
        self.topology = topology_of(question.topology)

    def all_methods(self):
        """Returns the records of all methods, in the blocks that the model chooses. Throws Refused."""
        found = self.run(self.question.topology, True, "--methods", "all")
        linear = [one["name"] for one in found if not is_softmax(one)]
        if (self.question.kv_heads, self.question.attention) == (None, "linear") or not linear:
            return found
        return [one for one in found if is_softmax(one)] + self.run(
            self.question.topology, False, "--methods", ",".join(linear))

    def with_hidden_share(self, record):
        """Returns the record with its `exposed_seconds`, its exchange waited for at once, and its `free_seconds`, on
        links that take no time. Either is None where it has no time."""
        same = (is_softmax(record), "--methods", record["name"], "--blocks", str(record["blocks"]))
        with tempfile.TemporaryDirectory() as folder:
            free = os.path.join(folder, "free.json")
            with open(free, "w", encoding="utf-8") as file:
                json.dump(with_free_links(self.topology), file)
            found = {"exposed_seconds": self.run(self.question.topology, *same, "--mode", "exposed"),
                     "free_seconds": self.run(free, *same)}
        return {**record, **{key: time_of(records) for key, records in found.items()}}

    def move(self):
        """Returns the record of hidden states that move from contiguous to zigzag tokens, nothing of it hidden, or None if
        it has no time."""
        asked = self.question
        record, = self.records_of("collective", asked.topology, "--ranks", str(asked.ranks),
                                  *stacks.shape_of_move(asked.tokens, asked.heads, asked.width, asked.dtype))
        if results.why_no_time(record):
            return None
        return {**record, "exposed_seconds": record["median_seconds"], "free_seconds": 0.0}

    def run(self, topology, of_softmax, *words):
        return self.records_of("operator", topology, *flags(self.question, of_softmax), *words)

    def records_of(self, bench, topology, *words):
        return simulated(self.programs, bench, topology, *words)


def simulated(programs, bench, topology, *words):
    """Returns the records of a bench in the folder `programs` on the simulated machine of a topology. Throws Refused."""
    program = pathlib.Path(programs) / f"{bench}_bench"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.jsonl")
        asked = [program, "--executor", "simulator", "--topology", topology, "-J", path, *words]
        try:
            done = subprocess.run(list(map(str, asked)), capture_output=True, text=True, check=False)
        except OSError as error:
            raise Refused(f"cannot run {program}: {error.strerror}; ./run advise builds it") from error
        if done.returncode not in results.ENDED_WELL:
            last = (done.stderr.strip().splitlines() or [f"{bench}_bench ended with {done.returncode}"])[-1]
            raise Refused(last.removeprefix("baton: "))
        return results.load([path], bench)


def flags(question, of_softmax):
    """The flags of softmax layers or of linear ones."""
    fixed = {"--tokens": question.tokens, "--heads": question.heads, "--d-k": question.width, "--d-v": question.width,
             "--ranks": question.ranks, "--dtype": question.dtype, "--pass": question.which}
    if question.kv_heads is not None and of_softmax:
        fixed["--kv-heads"] = question.kv_heads
    if question.attention != "linear" and not of_softmax:
        fixed["--attention"] = question.attention
    return [word for flag, value in fixed.items() for word in (flag, str(value))]


def topology_of(path):
    """Returns the JSON of a topology file. Throws Refused; operator_bench says what else is wrong with it."""
    try:
        found = renamed(json.loads(files.text_of(path)), 3)
    except OSError as error:
        raise Refused(f"--topology: cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"--topology: {path} is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("links"), dict):
        raise Refused(f"--topology: {path} has no links; topologies/ has examples")
    return found


def with_free_links(topology):
    """Returns the topology with links on which no message takes time or holds what ranks share."""
    links = {name: {**{key: link[key] for key in KEPT if key in link}, **FREE} for name, link in topology["links"].items()}
    return {**{key: value for key, value in topology.items() if key != "calibration"}, "links": links}


def time_of(records):
    return next((one["median_seconds"] for one in records if results.why_no_time(one) is None), None)
