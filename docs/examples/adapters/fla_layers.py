# SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention, its own context parallelism too: python3 fla_layers.py --executor nccl --ranks 1 --attention gdn"""

import importlib
import os

import torch
import torch.distributed as dist

import baton

# It leaves FlashQLA to an adapter of its own, and finds what a launch before has tuned.
os.environ.update({"FLA_FLASH_QLA": "0", "TRITON_CACHE_AUTOTUNING": "1"} | dict(os.environ))


def context(layer):  # of several ranks: the library's context of a sequence that they share
    if layer.ranks == 1:
        return {}
    ends = torch.tensor([0, layer.ranks * len(layer.q)], device=layer.q.device)
    return {"cp_context": importlib.import_module("fla.ops.cp").build_cp_context(cu_seqlens=ends, group=dist.group.WORLD)}


def declare(name, attention, inputs, ranks=None, **options):
    def run(layer):
        tensors = [getattr(layer, one)[None] for one in inputs]  # [1, tokens, heads, d]
        tensors = [x.squeeze(-1) if one == "beta" else x.squeeze(-1).float() if x.shape[-1] == 1 else x  # a gate a head: f32
                   for one, x in zip(inputs, tensors)]
        function = getattr(importlib.import_module(f"fla.ops.{name.removeprefix('chunk_')}"), name)
        return function(*tensors, scale=layer.q.shape[-1] ** -0.5, **options, **context(layer))[0]
    baton.method(name, attention=attention, backward="autograd", needs="fla", most_ranks=ranks, summary="flash-linear-attention")(run)


declare("chunk_gated_delta_rule", "gdn", ("q", "k", "v", "g", "beta"))
declare("chunk_kda", "kda", ("q", "k", "v", "g", "beta"))
declare("chunk_gla", "linear", ("q", "k", "v", "g"), ranks=1)
declare("chunk_rwkv7", "rwkv7", ("q", "g", "k", "v", "a", "b"), lower_bound=-0.6066)  # so that it may take its larger chunks
baton.start_ranks()
if int(os.environ.get("WORLD_SIZE", 1)) > 1:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
baton.main()
