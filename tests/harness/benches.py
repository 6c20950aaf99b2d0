# SPDX-License-Identifier: Apache-2.0
"""Runs the benches that the command line of a test names: COLLECTIVE_BENCH OPERATOR_BENCH"""

import json
import os
import subprocess
import sys
import tempfile

OPERATOR_BENCH = sys.argv.pop(2)
BENCH = sys.argv.pop(1)
TOPOLOGIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "topologies")
SMALL = ["--heads", "1", "--d-k", "4", "--d-v", "4", "--tokens", "4", "-n", "3", "-w", "1"]


def run(*arguments, launcher=(), bench=BENCH, **environment):
    return subprocess.run([*launcher, bench, *arguments], capture_output=True, text=True, timeout=1200,
                          env={**os.environ, **environment})


def mpirun(processes):
    return ["mpirun", "-n", str(processes), "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]


def machine_text(**link):
    """A machine of two nodes with four ranks each; `link` changes the wires in the nodes."""
    wire = {"latency_seconds": 1e-6, "overhead_seconds": 1e-7, "bytes_per_second": 1e9, "source": "made up"}
    rate = {"flops_per_second": 1e9, "bytes_per_second": 1e9, "source": "made up"}
    copy = {"bytes_per_second": 1e9, "source": "made up"}
    return json.dumps({"name": "made up", "description": "For a test.",
                       "machine": {"nodes": 2, "ranks_per_node": 4, "source": "made up"},
                       "links": {"intra_node": {**wire, **link}, "inter_node": {**wire, "latency_seconds": 5e-6}},
                       "device": {"kernel": rate, "copy": copy, "combine": rate}})


class OperatorRecords:
    """The records of operator_bench, for a TestCase."""
    LAYER = ["--heads", "2", "--d-k", "4", "--d-v", "6", "--tokens", "20", "--chunk", "8", "-n", "3", "-w", "1"]

    def records(self, *arguments, layer=LAYER, code=0):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/records.jsonl"
            ended = run(*arguments, *layer, "-J", path, bench=OPERATOR_BENCH)
            self.assertEqual(ended.returncode, code, ended.stderr)
            with open(path) as file:
                return [json.loads(line) for line in file]
