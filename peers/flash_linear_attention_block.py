# SPDX-License-Identifier: Apache-2.0
"""Times a block of a model made of flash-linear-attention's layers beside model_bench: one JSON line a case.

    python3 peers/flash_linear_attention_block.py --out results/h200-2/peers_model.jsonl

The script needs PyTorch, Triton, transformers and flash-linear-attention (`pip install flash-linear-attention`), which
are no part of Baton. The block is that project's GLABlock in bf16 with the sizes of models/<model>.json: one forward and
one backward pass over a batch of one sequence, with gradients of x and of all weights in bf16, which are made anew in
every round. CUDA events enclose each of 20 rounds after 5 of warm-up, which also choose Triton's kernels.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import statistics

import torch
import triton
from fla.models.gla.configuration_gla import GLAConfig
from fla.models.gla.modeling_gla import GLABlock

WARM_UP, ROUNDS = 5, 20
MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


def main():
    options = parse()
    row = measure(options.model, options.tokens)
    with open(options.out, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(f"{options.model}: {options.tokens} tokens, forward {row['forward_seconds'] * 1e3:.3f} ms, "
          f"both passes {row['median_seconds'] * 1e3:.3f} ms")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the file of JSON lines to append to")
    parser.add_argument("--model", default="gla-1b-h16", help="a name of models/")
    parser.add_argument("--tokens", type=int, default=32768)
    return parser.parse_args()


def block_of(model):
    sizes = json.loads((MODELS / f"{model}.json").read_text(encoding="utf-8"))
    width, heads = sizes["width"], sizes["heads"]
    config = GLAConfig(hidden_size=width, num_heads=heads, expand_k=heads * sizes["d_k"] / width,
                       expand_v=heads * sizes["d_v"] / width, intermediate_size=sizes["mlp"],
                       use_output_gate=sizes["output_gate"])
    return GLABlock(config, layer_idx=0).to(device="cuda", dtype=torch.bfloat16), width


def measure(model, tokens):
    block, width = block_of(model)
    x, d_y = (torch.randn(1, tokens, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x.requires_grad_(True)
    wanted = [x, *block.parameters()]
    forward, both = [], []
    for i in range(WARM_UP + ROUNDS):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        torch.cuda.synchronize()
        marks[0].record()
        y = block(x)[0]
        marks[1].record()
        torch.autograd.grad(y, wanted, d_y)
        marks[2].record()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            forward.append(marks[0].elapsed_time(marks[1]) * 1e-3)
            both.append(marks[0].elapsed_time(marks[2]) * 1e-3)
    return {"peer": "flash-linear-attention", "version": importlib.metadata.version("flash-linear-attention"),
            "kernel": "GLABlock", "model": model, "layers": 1, "pass": "both", "tokens": tokens, "dtype": "bf16",
            "median_seconds": statistics.median(both), "forward_seconds": statistics.median(forward),
            "seconds": both, "warmup": WARM_UP, "rounds": ROUNDS, "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__, "triton": triton.__version__,
            "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}


if __name__ == "__main__":
    main()
