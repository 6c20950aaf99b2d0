# SPDX-License-Identifier: Apache-2.0
"""Measures the layers of one GPU by this suite's kernels and by other projects', in turns, and prints one table.

Other projects' kernels are those of results/peers/layers.py, by the `python3` that is first in PATH: one whose library is
not installed there is named and left out. A launch of theirs that takes longer than --limit, tuning included, is ended.
The records are layers.jsonl (ours) and peers.jsonl in the folder of --out; ./run paper shows those of a folder of results/.
"""

import argparse
import pathlib
import subprocess
import sys

from baton import checks, program
from baton.peers import table
from baton.peers.kernels import PEERS

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "results/peers/layers.py"


def main(arguments):
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    ours, theirs = options.out / "layers.jsonl", options.out / "peers.jsonl"
    for file in (ours, theirs):
        file.write_text("", encoding="utf-8")
    missing = {}
    for launch in range(options.launches):
        for attention in options.layers:
            print(f"      launch {launch + 1} of {options.launches}, {attention}", file=sys.stderr, flush=True)
            measure_ours(options, attention, ours)
            for kernel, library in PEERS[attention].items():
                if kernel not in missing:
                    missing |= measure_theirs(options, kernel, library, theirs)
    print(table.text(list(table.rows(options.layers, read(ours), read(theirs)))))
    for kernel, reason in missing.items():
        print(f"{kernel} was not measured: {reason}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="baton peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"some of {', '.join(PEERS)}; all unless given")
    parser.add_argument("--programs", type=pathlib.Path, required=True, metavar="DIR", help="where the benches are")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/local/peers"), metavar="DIR",
                        help="the folder of the records, which are replaced; %(default)s")
    parser.add_argument("--tokens", type=program.positive, default=16384, metavar="N")
    parser.add_argument("--heads", type=program.positive, default=16, metavar="N")
    parser.add_argument("--launches", type=program.positive, default=3, metavar="N", help="%(default)s unless given")
    parser.add_argument("--limit", type=program.positive, default=900, metavar="S",
                        help="seconds that a launch of another project's kernel may take, tuning included; %(default)s unless given")
    options = parser.parse_args(arguments)
    unknown = [layer for layer in options.layers if layer not in PEERS]
    if unknown:
        parser.error(f"unknown layer {unknown[0]!r}; known: {', '.join(PEERS)}")
    options.layers = options.layers or list(PEERS)
    return options


def measure_ours(options, attention, file):
    layer = ["--methods", "ring_attention_softmax"] if attention == "softmax" else ["--methods", "local", "--attention", attention]
    done = subprocess.run(
        [options.programs / "operator_bench", "--executor", "nccl", *layer, "--pass", "all", "--ranks", "1", "--dtype", "bf16",
         "--tokens", str(options.tokens), "--heads", str(options.heads), "--launches", "1", "-J", file],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        print(f"      {attention}: operator_bench ended with {done.returncode}: {last_line(done.stdout)}", file=sys.stderr)


def measure_theirs(options, kernel, library, file):
    """Runs one launch. Returns {kernel: why it cannot be measured} if that is so, else {}."""
    found = subprocess.run(["python3", "-c", f"import importlib.metadata as m; m.version({library!r})"],
                           capture_output=True, check=False)
    if found.returncode:
        return {kernel: f"python3 has no {library}; 'pip install {library}' installs it"}
    try:
        done = subprocess.run(["python3", SCRIPT, kernel, "--out", file, "--tokens", str(options.tokens),
                               "--heads", str(options.heads)], timeout=options.limit, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    except subprocess.TimeoutExpired:
        return {kernel: f"a launch took longer than {options.limit} s (--limit)"}
    return {kernel: last_line(done.stdout)} if done.returncode else {}


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def read(path):
    return [record for record, _ in checks.json_lines(path) if isinstance(record, dict)]
