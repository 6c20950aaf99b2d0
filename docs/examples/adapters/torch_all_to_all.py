# SPDX-License-Identifier: Apache-2.0
"""Ulysses: torch exchanges tokens of all heads for heads of all tokens: python3 torch_all_to_all.py --ranks 2,4 --tokens 1K"""

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

import baton


class Exchange(torch.autograd.Function):
    """[places, ...]: row p goes to rank p, and row p of the result came from it. The gradient goes the same way back."""

    @staticmethod
    def forward(ctx, rows):
        dist.all_to_all_single(into := torch.empty(rows.shape, dtype=rows.dtype, device=rows.device), rows.contiguous())
        return into

    backward = forward


@baton.method("torch_all_to_all", attention="softmax", backward="autograd", bytes="(Q+K+V+O)*(P-1)//P", hops="2",
              summary="heads exchanged for tokens by torch")
def torch_all_to_all(layer):
    def whole(x):  # [tokens, heads, d] -> [1, heads of this rank, tokens of all ranks, d]
        rows = x.unflatten(1, (layer.ranks, -1)).transpose(0, 1)
        return Exchange.apply(rows).flatten(0, 1).transpose(0, 1)[None]
    o = scaled_dot_product_attention(whole(layer.q), whole(layer.k), whole(layer.v), is_causal=True)
    return Exchange.apply(o[0].transpose(0, 1).unflatten(0, (layer.ranks, -1))).transpose(0, 1).flatten(1, 2)


baton.start_ranks()
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
baton.main()
