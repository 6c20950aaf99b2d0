# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's `context_parallel` beside Baton's softmax methods: a table, and one JSON line a case.

    torchrun --standalone --nproc-per-node 2 results/peers/torch_attention.py --out results/h100/peers.jsonl

`context_parallel` is Ring Attention with balanced loads, causal, here by cuDNN and by PyTorch's flash kernel; keys
travel by all-gather, as PyTorch has it by default, or by all-to-all. `tokens` are those of one rank. layers.py times
the same kernels on one GPU.

Before anything is timed, each kernel and way of travel is checked at 256 tokens a rank: outputs and
gradients of all ranks, put together, are those of plain attention on the whole sequence, or the run ends. A time that
would take more than `--peak` is no measurement: it is neither printed in the table nor written, and the script fails.

Tensors are bf16 [1, heads, tokens, d]. Each of 50 rounds after 5 of warm-up lies between two CUDA events. All ranks
start a round together, and the slowest one is its time. A backward pass is timed alone, on a forward pass that ran
before. A forward pass runs under no_grad.
"""

import argparse
import functools
import itertools
import json
import os
import statistics
import sys

import exactness
import ranks
import rounds
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.tensor.experimental._attention import (
    context_parallel, context_parallel_unshard, set_rotate_method)
from torch.nn.attention import SDPBackend, sdpa_kernel

CHECKED_TOKENS, CHECKED_HEADS, MOST_ERROR = 256, 2, 0.02
KERNELS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
ROTATIONS = ("allgather", "alltoall")


def main():
    options = parse()
    torch.use_deterministic_algorithms(options.deterministic)
    if "RANK" not in os.environ:
        sys.exit("torch_attention.py runs under torchrun; results/peers/layers.py times one GPU")
    rows = list(ring_rows(options))
    if ranks.OWN > 0:
        return
    print(f"{'kernel':34} {'mask':7} {'pass':9} {'ranks':>5} {'tokens':>7} {'ms':>9} {'TFLOP/s':>8}")
    refused = [row for row in rows if tflops(row) > options.peak]
    with open(options.out, "a", encoding="utf-8") as file:
        for row in (row for row in rows if tflops(row) <= options.peak):
            file.write(json.dumps(row) + "\n")
            print(f"{row['kernel']:34} {row['mask']:7} {row['pass']:9} {row['ranks']:5} {row['tokens']:7} "
                  f"{row['median_seconds'] * 1e3:9.3f} {tflops(row):8.0f}")
    if refused:
        sys.exit("\n".join(f"not a measurement: {row['kernel']} {row['mask']} {row['pass']} would take "
                           f"{tflops(row):.0f} TFLOP/s of {options.peak:.0f}" for row in refused))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the file of JSON lines to append to")
    parser.add_argument("--tokens", type=int, default=16384, help="tokens a rank")
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--d", type=int, default=128, help="d_k and d_v")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--peak", type=float, default=990, help="dense bf16 TFLOP/s of the GPU (H100 and H200: 990)")
    parser.add_argument("--deterministic", action="store_true", help="ask PyTorch for deterministic algorithms")
    return parser.parse_args()


def ring_rows(options):
    """All GPUs of the launch."""
    ranks.join()
    try:
        mesh = dist.device_mesh.init_device_mesh("cuda", (dist.get_world_size(),))
        for kernel, rotation in itertools.product(options.kernels, ROTATIONS):
            set_rotate_method(rotation)
            check_ring(options, mesh, kernel, rotation)
        for kernel, rotation, which in itertools.product(options.kernels, ROTATIONS, rounds.PASSES):
            set_rotate_method(rotation)
            with sdpa_kernel(KERNELS[kernel]):
                seconds = ring_seconds(options, mesh, which)
            yield row_of(options, f"context_parallel {kernel} {rotation}", "causal", which, mesh.size(), seconds)
    finally:
        dist.destroy_process_group()


def ring_seconds(options, mesh, which):
    size = (1, options.heads, options.tokens * mesh.size(), options.d)
    *tensors, d_o = whole = [drawn(*size) for _ in range(4)]
    with share_of(whole, mesh):
        assert d_o.shape[2] == options.tokens  # context_parallel has cut them
        for tensor in tensors:
            tensor.requires_grad_()
        call = rounds.call_of(lambda: attention(tensors, is_causal=True), tensors, d_o, which)
        return ranks.slowest(rounds.seconds_of([call]))


def share_of(whole, mesh):
    """Cuts queries, keys, values and d_o to those of this rank, in place. Attention is that of all ranks inside."""
    return context_parallel(mesh, buffers=whole, buffer_seq_dims=[2] * 4, no_restore_buffers=set(whole))


def check_ring(options, mesh, kernel, rotation):
    """Ends the run on all ranks unless they compute together what plain attention does on the whole sequence."""
    torch.manual_seed(1)  # all ranks draw the same
    whole = [drawn(1, CHECKED_HEADS, CHECKED_TOKENS * mesh.size(), options.d) for _ in range(4)]
    with sdpa_kernel(KERNELS[kernel]):
        wanted = results_of([tensor.clone() for tensor in whole])
        with share_of(whole, mesh):
            shares = results_of(whole)
    got = context_parallel_unshard(mesh, shares, [2] * len(shares))
    errors = ranks.gathered([error_of(*pair, 2 * mesh.size()) for pair in zip(got, wanted)])
    if all(error < MOST_ERROR for of_rank in errors for error in of_rank):
        return
    if ranks.OWN == 0:
        print(f"context_parallel {kernel} {rotation} is not attention on the whole sequence, so nothing was timed. "
              f"Relative errors of output, output under no_grad, dq, dk, dv by rank: "
              f"{[[round(error, 4) for error in of_rank] for of_rank in errors]}", file=sys.stderr, flush=True)
    dist.barrier()
    sys.exit(1)


def results_of(tensors):
    """The output, that under no_grad, and the gradients."""
    *inputs, d_o = tensors
    for tensor in inputs:
        tensor.requires_grad_()
    attend = functools.partial(attention, inputs, is_causal=True)
    output = attend()
    return [output.detach(), rounds.call_of(attend, inputs, d_o, "forward")(), *torch.autograd.grad(output, inputs, d_o)]


def error_of(got, wanted, pieces):
    """The worst piece's, because early tokens have the largest outputs and would hide the others."""
    return torch.stack([(part.float() - other.float()).norm() / other.float().norm()
                        for part, other in zip(got.chunk(pieces, 2), wanted.chunk(pieces, 2))]).max().item()


def attention(tensors, is_causal):
    # context_parallel replaces this function in its module, so a name imported from there misses it.
    return F.scaled_dot_product_attention(*tensors, is_causal=is_causal)


def drawn(*size):
    return torch.randn(*size, device="cuda", dtype=torch.bfloat16)


def row_of(options, kernel, mask, which, count, seconds):
    return {"peer": "PyTorch", "version": torch.__version__, **exactness.of("PyTorch"), "kernel": kernel, "mask": mask,
            "pass": which, "ranks": count, "tokens": options.tokens, "heads": options.heads, "d_k": options.d, "d_v": options.d,
            "dtype": "bf16", "deterministic": options.deterministic,
            "median_seconds": statistics.median(seconds), "seconds": seconds, "warmup": rounds.WARM_UP, "rounds": rounds.ROUNDS,
            "gpu": torch.cuda.get_device_name(), "cudnn": cudnn_version(),
            "time": rounds.now()}


def cudnn_version():
    code = torch.backends.cudnn.version() or 0
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


def tflops(row):
    """Of one rank, by the pairs that the mask leaves and five products backward."""
    products = {"forward": 2, "backward": 5, "both": 7}[row["pass"]]
    pairs = row["tokens"] ** 2 * row["ranks"] / (2 if row["mask"] == "causal" else 1)
    return 2 * products * pairs * row["heads"] * row["d_k"] / row["median_seconds"] * 1e-12


if __name__ == "__main__":
    main()
