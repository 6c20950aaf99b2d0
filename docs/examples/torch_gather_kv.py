# SPDX-License-Identifier: Apache-2.0
"""Softmax attention over keys and values that torch gathers over gloo: python3 torch_gather_kv.py --ranks 2,4 --tokens 1K"""

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention

import baton


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own):
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        dist.all_reduce(gradient := gradient.contiguous())
        return gradient.chunk(dist.get_world_size())[dist.get_rank()]


@baton.method("torch_gather_kv", attention="softmax", backward="autograd", summary="keys and values gathered by torch")
def torch_gather_kv(layer):  # this rank's q, k and v: [tokens, heads, d]
    k, v = Gather.apply(layer.k), Gather.apply(layer.v)
    places = torch.arange(len(layer.q)) + layer.rank * len(layer.q)
    seen = places[:, None] >= torch.arange(len(k))
    o = scaled_dot_product_attention(*(x.transpose(0, 1) for x in (layer.q, k, v)), attn_mask=seen)
    return o.transpose(0, 1)


baton.start_ranks()
dist.init_process_group("gloo")
baton.main()
