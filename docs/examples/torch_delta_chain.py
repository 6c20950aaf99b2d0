# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule, its state handed from rank to rank by torch: python3 torch_delta_chain.py --ranks 4 --tokens 256"""

import torch
import torch.distributed as dist

import baton


def recurrence(q, k, v, g, beta, state):  # the state [heads, d_k, d_v]
    out = []
    for q, k, v, g, beta in zip(q, k, v, g, beta):
        state = state * g.exp()[..., None]
        state = state + torch.einsum("hd,hv->hdv", k, beta * (v - torch.einsum("hd,hdv->hv", k, state)))
        out.append(torch.einsum("hd,hdv->hv", q, state))
    return torch.stack(out) * q.shape[-1] ** -0.5, state


def forward(layer):
    before = torch.zeros(layer.k.shape[1], layer.k.shape[2], layer.v.shape[2])
    if layer.rank > 0:
        dist.recv(before, layer.rank - 1)
    inputs = [x.detach().requires_grad_() for x in (layer.q, layer.k, layer.v, layer.g, layer.beta, before)]
    with torch.enable_grad():
        layer.saved = inputs, *recurrence(*inputs)
    if layer.rank + 1 < layer.ranks:
        dist.send(layer.saved[2].detach(), layer.rank + 1)
    return layer.saved[1].detach()


def backward(layer):
    inputs, o, after = layer.saved
    d_after = torch.zeros_like(after)
    if layer.rank + 1 < layer.ranks:
        dist.recv(d_after, layer.rank + 1)
    *gradients, d_before = torch.autograd.grad((o, after), inputs, (layer.d_o, d_after), retain_graph=True)
    if layer.rank > 0:
        dist.send(d_before, layer.rank - 1)
    return gradients


baton.method("torch_delta_chain", attention="gdn", backward=backward, views=torch.from_dlpack, bytes="N", hops="P-1",
             summary="a chain of states by torch over gloo")(forward)
baton.start_ranks()
dist.init_process_group("gloo")
baton.main()
