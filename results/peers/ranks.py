# SPDX-License-Identifier: Apache-2.0
"""The ranks of a launch by torchrun, one process for each GPU; one rank without torchrun."""

import os

import torch
import torch.distributed as dist

OWN, COUNT = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def join():
    """Joins the other ranks by NCCL, each on its own GPU."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)


def start_together():
    """Waits for this rank's GPU and for the other ranks."""
    torch.cuda.synchronize()
    if COUNT > 1:
        dist.barrier()
        torch.cuda.synchronize()


def gathered(own):
    """Returns every rank's object."""
    of_all = [None] * COUNT
    dist.all_gather_object(of_all, own)
    return of_all


def slowest(seconds):
    """Returns the time of each round by the rank that took longest."""
    return [max(times) for times in zip(*gathered(seconds))]


def share(tensors):
    """Returns this rank's tokens of {name: [1, tokens of all ranks, ...]}."""
    return {name: tensor.detach().chunk(COUNT, 1)[OWN].contiguous().requires_grad_(tensor.requires_grad)
            for name, tensor in tensors.items()}


def joined(tensor):
    """Returns the tokens of all ranks, of each rank's [1, tokens, ...]."""
    parts = [torch.empty_like(tensor) for _ in range(COUNT)]
    dist.all_gather(parts, tensor.contiguous())
    return torch.cat(parts, 1)
