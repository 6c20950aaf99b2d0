# SPDX-License-Identifier: Apache-2.0
"""PyTorch's context_parallel, and its attention on one GPU, by cuDNN and by its flash kernel:

    torchrun --standalone --nproc-per-node 2 torch_context_parallel.py --executor nccl --tokens 8K
"""

import contextlib
import os

import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import baton


def declare(name, backend):
    def run(layer):
        q, k, v = (x.transpose(0, 1)[None] for x in (layer.q, layer.k, layer.v))
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1)
    baton.method(f"context_parallel_{name}", attention="softmax", backward="autograd", layout="zigzag", deterministic=False,
                 summary=f"PyTorch's context_parallel by {name}")(run)


declare("cudnn", SDPBackend.CUDNN_ATTENTION)
declare("flash", SDPBackend.FLASH_ATTENTION)
baton.start_ranks()
ranks = int(os.environ.get("WORLD_SIZE", 1))
with contextlib.ExitStack() as stack:
    if ranks > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
        # It shards some buffer as it shards the sequence: two pieces a rank. From there on attention is that of all ranks.
        buffer = torch.empty(1, 2 * ranks, device="cuda")
        mesh = dist.device_mesh.init_device_mesh("cuda", (ranks,))
        stack.enter_context(context_parallel(mesh, buffers=[buffer], buffer_seq_dims=[1]))
    baton.main()
