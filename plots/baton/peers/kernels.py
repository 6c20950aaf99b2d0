# SPDX-License-Identifier: Apache-2.0
"""The kernels of other projects that results/peers/layers.py times."""

# The kernels of the script by the layer that they compute, and the library that each needs.
PEERS = {"linear": {"chunk_gla": "fla-core"},
         "gdn": {"chunk_gated_delta_rule": "fla-core", "flash_qla": "flash-qla"},
         "kda": {"chunk_kda": "fla-core"},
         "rwkv7": {"chunk_rwkv7": "fla-core"},
         "softmax": {"sdpa_cudnn": "torch", "sdpa_flash": "torch"}}
MOST_ERROR = 2e-2  # beyond it a kernel computes something else
