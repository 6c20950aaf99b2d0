# SPDX-License-Identifier: Apache-2.0
"""What the adapter of flash-linear-attention takes of it, as plain recurrences in torch: torch_test.py puts it in its place."""

import sys
import types

import torch
import torch.distributed as dist


class Whole(torch.autograd.Function):
    """The tokens of all ranks."""

    @staticmethod
    def forward(ctx, own):
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx, gradient):
        dist.all_reduce(gradient := gradient.contiguous())
        return gradient.chunk(dist.get_world_size(), 1)[dist.get_rank()]


def build_cp_context(cu_seqlens, group):
    assert group is dist.group.WORLD and cu_seqlens[0] == 0
    return int(cu_seqlens[1])


def recurrence(scale, cp_context, **tensors):
    """The output of [1, tokens, heads, ..] by name, token by token; a context's rank gives its own tokens."""
    if cp_context is not None:
        tensors = {name: Whole.apply(x) for name, x in tensors.items()}
        assert tensors["q"].shape[1] == cp_context
    rows = {name: x[0] for name, x in tensors.items()}
    state = torch.zeros(rows["k"].shape[1], rows["k"].shape[2], rows["v"].shape[2])
    out = []
    for t, (q, k, v, g) in enumerate(zip(*(rows[name] for name in "qkvg"))):
        kept = state * (g.exp()[:, None, None] if g.dim() == 1 else g.exp()[..., None])
        if "a" in rows:
            kept = kept + torch.einsum("hd,he,hev->hdv", rows["b"][t], rows["a"][t], state)
        if "beta" in rows:
            v = rows["beta"][t][:, None] * (v - torch.einsum("hd,hdv->hv", k, kept))
        state = kept + torch.einsum("hd,hv->hdv", k, v)
        out.append(torch.einsum("hd,hdv->hv", q, state))
    whole = torch.stack(out)[None] * scale
    return whole if cp_context is None else whole.chunk(dist.get_world_size(), 1)[dist.get_rank()]


def chunk_gla(q, k, v, g, scale):
    return recurrence(scale, None, q=q, k=k, v=v, g=g), None


def chunk_gated_delta_rule(q, k, v, g, beta, scale, cp_context=None):
    return recurrence(scale, cp_context, q=q, k=k, v=v, g=g, beta=beta), None


def chunk_rwkv7(r, w, k, v, a, b, scale, lower_bound, cp_context=None):
    assert lower_bound < w.min(), "the adapter promises it"
    return recurrence(scale, cp_context, q=r, g=w, k=k, v=v, a=a, b=b), None


MODULES = {"gla": [chunk_gla], "gated_delta_rule": [chunk_gated_delta_rule], "rwkv7": [chunk_rwkv7], "cp": [build_cp_context]}
sys.modules["fla.ops"] = types.ModuleType("fla.ops")
for module, functions in MODULES.items():
    sys.modules[f"fla.ops.{module}"] = types.ModuleType(f"fla.ops.{module}")
    for function in functions:
        setattr(sys.modules[f"fla.ops.{module}"], function.__name__, function)
sys.modules["fla.ops.kda"] = types.ModuleType("fla.ops.kda")
sys.modules["fla.ops.kda"].chunk_kda = chunk_gated_delta_rule
