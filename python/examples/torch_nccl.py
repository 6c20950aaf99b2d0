# SPDX-License-Identifier: Apache-2.0
"""A chain in torch over NCCL: torchrun --nproc-per-node 2 torch_nccl.py --executor nccl -b 256K -e 16M

The function enqueues on the stream of the round and does not wait for the GPU.
"""

import atexit
import os

import torch
import torch.distributed as dist

import baton


@baton.native("torch_chain", bytes="N", hops="P-1", summary="a chain in torch over NCCL", views=torch.from_dlpack)
def torch_chain(call):
    with torch.cuda.stream(torch.cuda.ExternalStream(call.stream)):
        carry = call.state
        if call.rank > 0:
            dist.recv(call.into, call.home(call.rank - 1))
            carry = call.decay * call.into + call.state
        if call.rank + 1 < call.ranks:
            dist.send(carry, call.home(call.rank + 1))


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
atexit.register(dist.destroy_process_group)
baton.main()
