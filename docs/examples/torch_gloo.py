# SPDX-License-Identifier: Apache-2.0
"""A chain and a gather in torch over gloo: python3 torch_gloo.py --ranks 4 -b 256K -e 16M"""

import torch
import torch.distributed as dist

import baton

functional = torch.ops._c10d_functional  # torch's functional collectives


@baton.native("gloo_chain", bytes="N", hops="P-1", summary="a chain in torch over gloo", views=torch.from_dlpack)
def gloo_chain(call):
    carry = call.state
    if call.rank > 0:
        dist.recv(call.into, call.home(call.rank - 1))
        carry = call.decay * call.into + call.state
    if call.rank + 1 < call.ranks:
        dist.send(carry, call.home(call.rank + 1))


@baton.native("torch_gather", summary="a functional all-gather of torch, and a fold", views=torch.from_dlpack)
def torch_gather(call):
    maps = functional.wait_tensor(functional.all_gather_into_tensor(call.own, call.ranks, dist.group.WORLD.group_name))
    parts, before = [call.decay.numel(), call.into.numel()], torch.zeros(())
    for place in range(call.rank):
        decay, state = maps[call.home(place)].split(parts)
        before = decay.view_as(call.decay) * before + state.view_as(call.into)
    if call.rank > 0:  # the first rank's result is nobody's
        call.into.copy_(before)


baton.start_ranks()
dist.init_process_group("gloo")
baton.main()
