# SPDX-License-Identifier: Apache-2.0
"""Times flash-linear-attention's chunk_gla beside Baton's kernels: one JSON line a case.

    python3 results/peers/flash_linear_attention.py --out results/h200/peers.jsonl

The script needs PyTorch, Triton and the kernels of flash-linear-attention (`pip install fla-core`), which are no part of
Baton. Inputs are bf16 [1, tokens, heads, d], and gates are drawn as a layer makes them. CUDA events enclose each of 50
rounds after 5 of warm-up. The rounds take turns on copies of the inputs, so no round finds its own in the L2 cache. The
backward pass is timed alone, on a forward pass that ran before.
"""

import argparse
import datetime
import importlib.metadata
import json
import statistics

import torch
import triton
from fla.ops.gla import chunk_gla

WARM_UP, ROUNDS = 5, 50
L2_BYTES = 64 << 20
SHAPES = ((16384, 16), (32768, 16), (8192, 32))
PASSES = ("forward", "backward", "both")


def main():
    options = parse()
    with open(options.out, "a", encoding="utf-8") as file:
        for tokens, heads in SHAPES:
            for which in PASSES:
                row = measure(tokens, heads, options.d, which)
                file.write(json.dumps(row) + "\n")
                print(f"{which:8} tokens {tokens:6} heads {heads:3}  "
                      f"median {row['median_seconds'] * 1e3:.3f} ms")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the file of JSON lines to append to")
    parser.add_argument("--d", type=int, default=128, help="d_k and d_v")
    return parser.parse_args()


def measure(tokens, heads, d, which):
    sets = [Inputs(tokens, heads, d) for _ in range(copies(tokens, heads, d))]
    seconds = []
    for i in range(WARM_UP + ROUNDS):
        elapsed = timed(sets[i % len(sets)], which)
        if i >= WARM_UP:
            seconds.append(elapsed)
    return {"peer": "flash-linear-attention", "version": version(), "kernel": "chunk_gla", "pass": which,
            "tokens": tokens, "heads": heads, "d_k": d, "d_v": d, "dtype": "bf16",
            "median_seconds": statistics.median(seconds), "seconds": seconds, "warmup": WARM_UP,
            "rounds": ROUNDS, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
            "triton": triton.__version__,
            "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


class Inputs:
    """One set of a layer's tensors."""

    def __init__(self, tokens, heads, d):
        def drawn():
            return torch.randn(1, tokens, heads, d, device="cuda", dtype=torch.bfloat16)

        gates = torch.nn.functional.logsigmoid(torch.randn(1, tokens, heads, d, device="cuda")) / 16
        self.tensors = [drawn(), drawn(), drawn(), gates.to(torch.bfloat16)]
        self.d_o = drawn()
        for tensor in self.tensors:
            tensor.requires_grad_(True)


def copies(tokens, heads, d):
    return 1 + 2 * L2_BYTES // (4 * tokens * heads * d * 2)


def timed(inputs, which):
    if which == "forward":
        with torch.no_grad():
            return elapsed_seconds(lambda: chunk_gla(*inputs.tensors))
    if which == "both":
        return elapsed_seconds(lambda: chunk_gla(*inputs.tensors)[0].backward(inputs.d_o))
    output = chunk_gla(*inputs.tensors)[0]
    return elapsed_seconds(lambda: torch.autograd.grad(output, inputs.tensors, inputs.d_o))


def elapsed_seconds(call):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3


def version():
    for distribution in ("fla-core", "flash-linear-attention"):
        try:
            return f"{distribution} {importlib.metadata.version(distribution)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "from source"


if __name__ == "__main__":
    main()
