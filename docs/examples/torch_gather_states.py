# SPDX-License-Identifier: Apache-2.0
"""Gated linear attention whose states torch gathers over gloo: python3 torch_gather_states.py --ranks 4 --tokens 1K"""

import torch
import torch.distributed as dist

import baton


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, own):
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(ctx, gradient):
        dist.all_reduce(gradient := gradient.contiguous())
        return gradient[dist.get_rank()]


def attend(q, k, v, g, state):  # [tokens, heads, d], and the state [heads, d_k, d_v] before them
    out = []
    for q, k, v, g in zip(*(x.split(16) for x in (q, k, v, g))):
        decay = g.cumsum(0)
        scores = torch.einsum("thd,shd->hts", q * decay.exp(), k * (-decay).exp()).tril()
        out.append(torch.einsum("hts,shv->thv", scores, v) + torch.einsum("thd,hdv->thv", q * decay.exp(), state))
        state = state * decay[-1].exp()[..., None] + torch.einsum("thd,thv->hdv", k * (decay[-1] - decay).exp(), v)
    return torch.cat(out) * q.shape[-1] ** -0.5, state


@baton.method("torch_gather_states", attention="linear", backward="autograd", summary="states gathered by torch over gloo")
def torch_gather_states(layer):
    q, k, v, g = layer.q, layer.k, layer.v, layer.g.expand_as(layer.k)
    before = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
    maps = Gather.apply(torch.cat([g.sum(0).exp()[..., None], attend(q, k, v, g, before)[1]], -1))
    for place, one in enumerate(maps):  # each rank reads all maps, or its backward pass would not call the library
        before = torch.where(torch.tensor(place < layer.rank), one[..., :1] * before + one[..., 1:], before)
    return attend(q, k, v, g, before)[0]


baton.start_ranks()
dist.init_process_group("gloo")
baton.main()
