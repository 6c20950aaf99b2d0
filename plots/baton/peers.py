# SPDX-License-Identifier: Apache-2.0
"""Measures layers of one GPU by this suite's kernels and by other projects', in one contest for each layer and project.

Other projects are called by docs/examples/adapters, in the `python3` that is first in PATH. They run under the protocol of
operator_bench, which times and verifies them as it does its own; a project that is not installed there is a skipped row.
The records are layers.jsonl in the folder of --out; './run paper' shows those of a folder of results/.
"""

import argparse
import os
import pathlib
import subprocess

from baton import program

ADAPTERS = pathlib.Path(__file__).resolve().parents[2] / "docs/examples/adapters"
FLA, QLA, TORCH = "fla_layers.py", "flash_qla_layer.py", "torch_context_parallel.py"
# The adapters of a layer, each with its methods and the flags of their contest.
LAYERS = {"linear": [(FLA, "chunk_gla", [])],
          "gdn": [(FLA, "chunk_gated_delta_rule", []), (QLA, "flash_qla", ["--gates", "layer,mixed"])],
          "kda": [(FLA, "chunk_kda", [])],
          "rwkv7": [(FLA, "chunk_rwkv7", [])],
          "softmax": [(TORCH, "context_parallel_cudnn,context_parallel_flash", [])]}


def main(arguments):
    """Returns the worst exit code of the contests."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    records = options.out / "layers.jsonl"
    records.write_text("", encoding="utf-8")
    codes = [run(options, layer, *contest, records) for layer in options.layers or LAYERS for contest in LAYERS[layer]]
    return max(code if code >= 0 else 128 - code for code in codes)  # less than 0: ended by a signal


def parse(arguments):
    parser = argparse.ArgumentParser(prog="baton peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"some of {', '.join(LAYERS)}; all unless given")
    parser.add_argument("--package", type=pathlib.Path, required=True, metavar="DIR",
                        help="where a wheel of './run wheel --cuda' for python3 is installed")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/local/peers"), metavar="DIR",
                        help="the folder of the records, which are replaced; %(default)s")
    parser.add_argument("--tokens", type=program.positive, default=16384, metavar="N")
    parser.add_argument("--heads", type=program.positive, default=16, metavar="N")
    parser.add_argument("--launches", type=program.positive, default=3, metavar="N", help="%(default)s unless given")
    parser.add_argument("--limit", type=program.positive, default=900, metavar="S",
                        help="seconds that a row may take, a library's tuning included; %(default)s unless given")
    options = parser.parse_args(arguments)
    unknown = [layer for layer in options.layers if layer not in LAYERS]
    if unknown:
        parser.error(f"unknown layer {unknown[0]!r}; known: {', '.join(LAYERS)}")
    return options


def run(options, layer, adapter, methods, flags, records):
    """Runs one contest, whose table goes to the standard output, and returns its exit code."""
    ours = "ring_attention_softmax" if layer == "softmax" else "local"
    attention = [] if layer == "softmax" else ["--attention", layer]
    words = ["--executor", "nccl", "--ranks", 1, "--dtype", "bf16", "--pass", "all", "--tokens", options.tokens,
             "--heads", options.heads, "--launches", options.launches, "--timeout", options.limit, *attention,
             "--methods", f"{ours},{methods}", *flags, "-J", records.resolve()]
    package = os.pathsep.join(filter(None, [str(options.package.resolve()), os.environ.get("PYTHONPATH")]))
    return subprocess.run(["python3", ADAPTERS / adapter, *map(str, words)], env={**os.environ, "PYTHONPATH": package},
                          check=False).returncode
