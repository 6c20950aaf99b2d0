# SPDX-License-Identifier: Apache-2.0
"""Times another project's layer on one GPU, after it proved its results: one JSON line for each pass.

    python3 results/peers/layers.py chunk_gla --out peers.jsonl
    torchrun --standalone --nproc-per-node 2 results/peers/layers.py chunk_kda --out peers.jsonl

Tensors are bf16 [1, tokens, heads, d], drawn as `operator_bench` draws a layer's: gates as a layer makes them, keys
and queries of length one under the delta and low-rank rules. At the length that is timed, the output and all
gradients of one head are compared with the token recurrence in float64 by PyTorch's autograd; `error` is the worst
relative error in the Frobenius norm. Each of 50 rounds after 5 of warm-up lies between two CUDA events. A round is
the replay of a CUDA graph where the library can be captured, else its launches, and the line says which. Rounds take
turns on copies of the inputs, so none finds its own in the L2 cache. A backward pass is timed alone, on a forward
pass that ran before.

`flash_qla_quarter_ungated` has log gates of 0 in every fourth head, of which the last is the one that is compared.
Each line says whether the project's kernels are `exact` and, if not, what is `left_out`.

Under torchrun the GPUs share one sequence by the library's own context parallelism. `tokens` are those of one rank
then, all ranks start a round together, and the slowest rank's time is the round's.
"""

import argparse
import functools
import importlib
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
from typing import NamedTuple

os.environ.setdefault("TRITON_CACHE_AUTOTUNING", "1")  # a second launch finds what the first one chose
os.environ.setdefault("FLA_FLASH_QLA", "0")  # else flash-linear-attention calls FlashQLA, which has its own line

import exactness  # pylint: disable=wrong-import-position
import ranks  # pylint: disable=wrong-import-position
import rounds  # pylint: disable=wrong-import-position
import torch  # pylint: disable=wrong-import-position
import torch.distributed as dist  # pylint: disable=wrong-import-position
import torch.nn.functional as F  # pylint: disable=wrong-import-position
from torch.nn.attention import SDPBackend, sdpa_kernel  # pylint: disable=wrong-import-position

LEAST_LOW_RANK_GATE = -0.6066  # -e^{-1/2}, arXiv 2503.14456, and its rounding to bf16
L2_BYTES = 64 << 20


class Kernel(NamedTuple):
    """A function of another project, found as module.function, and the layer that it computes."""
    peer: str
    package: str
    module: str
    function: str
    attention: str
    call: callable  # (function, inputs by name) -> output
    ungated: int = 0  # if not 0, every so many-th head has log gates of 0, the last one too


def _delta(function, x):
    return function(x["q"], x["k"], x["v"], x["g"], x["beta"])[0]


def _low_rank(function, x):
    return function(x["q"], x["g"], x["k"], x["v"], x["a"], x["b"], scale=x["q"].shape[-1] ** -0.5,
                    lower_bound=LEAST_LOW_RANK_GATE)[0]  # so that it may take its larger chunks


def _by(backend):
    def call(function, x):
        with sdpa_kernel(backend):
            return function(*(x[name].transpose(1, 2) for name in "qkv"), is_causal=True).transpose(1, 2)
    return call


FLA = ("flash-linear-attention", "fla-core")
QLA = Kernel("FlashQLA", "flash-qla", "flash_qla", "chunk_gated_delta_rule", "gdn", _delta)
KERNELS = {
    "chunk_gla": Kernel(*FLA, "fla.ops.gla", "chunk_gla", "linear",
                        lambda function, x: function(x["q"], x["k"], x["v"], x["g"])[0]),
    "chunk_gated_delta_rule": Kernel(*FLA, "fla.ops.gated_delta_rule", "chunk_gated_delta_rule", "gdn", _delta),
    "chunk_kda": Kernel(*FLA, "fla.ops.kda", "chunk_kda", "kda", _delta),
    "chunk_rwkv7": Kernel(*FLA, "fla.ops.rwkv7", "chunk_rwkv7", "rwkv7", _low_rank),
    "flash_qla": QLA,
    "flash_qla_quarter_ungated": QLA._replace(ungated=4),  # as in FlashQLA's own benchmark
    "sdpa_cudnn": Kernel("PyTorch", "torch", "torch.nn.functional", "scaled_dot_product_attention", "softmax",
                         _by(SDPBackend.CUDNN_ATTENTION)),
    "sdpa_flash": Kernel("PyTorch", "torch", "torch.nn.functional", "scaled_dot_product_attention", "softmax",
                         _by(SDPBackend.FLASH_ATTENTION))}
# What a layer reads beside q, k, v.
INPUTS = {"linear": ("g",), "gdn": ("g", "beta"), "kda": ("g", "beta"), "rwkv7": ("g", "a", "b"), "softmax": ()}
CONTEXT_PARALLEL = ("chunk_gated_delta_rule", "chunk_kda", "chunk_rwkv7")


def main():
    options = parse()
    kernel = KERNELS[options.kernel]
    function = getattr(importlib.import_module(kernel.module), kernel.function)
    if ranks.COUNT > 1:
        ranks.join()
        function = context_parallel(function, options.tokens * ranks.COUNT)
    torch.manual_seed(options.seed)
    error = relative_error(kernel, function, drawn(kernel, options))
    for which in rounds.PASSES:
        row = {**measured(kernel, function, options, which), "error": error}
        if ranks.OWN == 0:
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    if ranks.COUNT > 1:
        dist.destroy_process_group()


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=KERNELS)
    parser.add_argument("--out", required=True, help="the file of JSON lines to append to")
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--d", type=int, default=128, help="d_k and d_v")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if ranks.COUNT > 1 and options.kernel not in CONTEXT_PARALLEL:
        parser.error(f"{options.kernel} has no context parallelism; known: {', '.join(CONTEXT_PARALLEL)}")
    ungated = KERNELS[options.kernel].ungated
    if ungated and options.heads % ungated:
        parser.error(f"{options.kernel} takes a multiple of {ungated} heads, not {options.heads}")
    return options


def context_parallel(function, tokens):
    """Returns the function on this rank's share of so many tokens."""
    from fla.ops.cp import build_cp_context  # pylint: disable=import-outside-toplevel,import-error
    ends = torch.tensor([0, tokens], device="cuda")
    return functools.partial(function, cp_context=build_cp_context(cu_seqlens=ends, group=dist.group.WORLD))


# --- Inputs and what they must give ------------------------------------------------------------------------


def drawn(kernel, options):
    """Returns the inputs by name, of all ranks' tokens, and d_o, the gradient of the output."""
    def normal(*width):
        return torch.randn(1, options.tokens * ranks.COUNT, options.heads, *width, device="cuda")

    x = {name: normal(options.d) for name in ("q", "k", "v", "d_o")}
    extra = INPUTS[kernel.attention]
    if "g" in extra:
        gate = normal() if kernel.attention == "gdn" else normal(options.d)
        x["g"] = torch.sigmoid(gate) * -math.exp(-0.5) if "a" in extra else F.logsigmoid(gate) / 16
    if kernel.ungated:
        x["g"][:, :, kernel.ungated - 1::kernel.ungated] = 0
    if "beta" in extra:
        x["beta"] = torch.sigmoid(normal())
    if len(extra) > 1:
        x["q"], x["k"] = F.normalize(x["q"], dim=-1), F.normalize(x["k"], dim=-1)
    if "a" in extra:
        x["a"] = F.normalize(normal(options.d), dim=-1)
        x["b"] = -x["a"] * torch.sigmoid(normal(options.d))
    # Gates a head stay float32, as their layers make them.
    return {name: value.to(torch.float32 if name == "g" and value.dim() == 3 else torch.bfloat16)
            .requires_grad_(name != "d_o") for name, value in x.items()}


def results(compute, x):
    """Returns the output and the gradient of each input."""
    inputs = [value for name, value in x.items() if name != "d_o"]
    output = compute()
    return [output.detach(), *torch.autograd.grad(output, inputs, x["d_o"].to(output.dtype))]


def relative_error(kernel, function, x):
    """Returns the worst error of one head's output and gradients; NaN if one is."""
    mine = ranks.share(x)
    got = [value[:, :, -1:] for value in results(lambda: kernel.call(function, mine), mine)]
    if ranks.COUNT > 1:
        got = [ranks.joined(value) for value in got]
    one = {name: value[:, :, -1:].detach().double().requires_grad_(name != "d_o") for name, value in x.items()}
    reference = attention if kernel.attention == "softmax" else recurrence
    wanted = results(lambda: reference(one), one)
    errors = [((a.double() - b).norm() / b.norm()).item() for a, b in zip(got, wanted)]
    return max(errors, key=lambda error: (error != error, error))  # pylint: disable=comparison-with-itself


def recurrence(x):
    """The output of linear attention token by token; the state is [d_k, d_v]."""
    rows = {name: value[0, :, 0].unbind() for name, value in x.items()}
    state, outputs = torch.zeros(x["k"].shape[-1], x["v"].shape[-1], dtype=torch.float64, device="cuda"), []
    for t, (q, k, v, gate) in enumerate(zip(*(rows[name] for name in "qkvg"))):
        kept = gate.exp()[..., None] * state
        if "a" in rows:
            kept = kept + torch.outer(rows["b"][t], rows["a"][t] @ state)
        state = kept + torch.outer(k, rows["beta"][t] * (v - k @ kept) if "beta" in rows else v)
        outputs.append(q @ state)
    return torch.stack(outputs)[None, :, None] * x["k"].shape[-1] ** -0.5


def attention(x):
    """The output of causal softmax attention."""
    q, k, v = (x[name][0, :, 0] for name in "qkv")
    later = torch.ones(len(q), len(k), dtype=torch.bool, device="cuda").triu(1)
    scores = (q @ k.T * q.shape[-1] ** -0.5).masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ v)[None, :, None]


# --- Times ------------------------------------------------------------------------------------------------


def measured(kernel, function, options, which):
    copies = 1 + 2 * L2_BYTES // (4 * options.tokens * options.heads * options.d * 2)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        calls = [round_of(kernel, function, ranks.share(drawn(kernel, options)), which) for _ in range(copies)]
        for call in calls * 3:
            call()
        torch.cuda.synchronize()
        try:
            calls, timing = [replay(call, stream) for call in calls], "graph"
        except RuntimeError:  # what allocates or waits cannot be captured
            timing = "launches"
        seconds = rounds.seconds_of(calls)
    if ranks.COUNT > 1:
        seconds = ranks.slowest(seconds)
    clock, power = state_of_gpu()
    return {"peer": kernel.peer, "version": f"{kernel.package} {version(kernel.package)}", **exactness.of(kernel.peer),
            "kernel": options.kernel, "attention": kernel.attention, "pass": which, "ranks": ranks.COUNT,
            "tokens": options.tokens, "heads": options.heads, "d_k": options.d, "d_v": options.d, "dtype": "bf16",
            "timing": timing, "median_seconds": statistics.median(seconds), "seconds": seconds, "warmup": rounds.WARM_UP,
            "rounds": rounds.ROUNDS, "gpu": torch.cuda.get_device_name(), "sm_clock_mhz": clock,
            "power_watts": power, "torch": torch.__version__, "triton": version("triton"),
            "tilelang": version("tilelang"),  # flash-linear-attention takes its kernels if there are any
            "time": rounds.now()}


def version(package):
    """Returns the version that is installed, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def round_of(kernel, function, x, which):
    inputs = [value for name, value in x.items() if name != "d_o"]
    return rounds.call_of(lambda: kernel.call(function, x), inputs, x["d_o"], which)


def replay(call, stream):
    graph = torch.cuda.CUDAGraph()
    # NCCL's own thread may call CUDA meanwhile.
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        call()
    return graph.replay


def state_of_gpu():
    """Returns the clock in MHz and the power in watts right after the rounds, or None for each."""
    try:
        own = f"--id=GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        text = subprocess.run(["nvidia-smi", own, "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
        return [float(value) for value in text.splitlines()[0].split(",")]
    except (OSError, subprocess.CalledProcessError, ValueError):
        return [None, None]


if __name__ == "__main__":
    main()
