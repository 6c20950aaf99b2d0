# SPDX-License-Identifier: Apache-2.0
"""The kernels of other projects that results/peers/layers.py times, and whether they compute everything."""

# The kernels of the script by the layer that they compute, and the library that each needs.
PEERS = {"linear": {"chunk_gla": "fla-core"},
         "gdn": {"chunk_gated_delta_rule": "fla-core", "flash_qla": "flash-qla", "flash_qla_quarter_ungated": "flash-qla"},
         "kda": {"chunk_kda": "fla-core"},
         "rwkv7": {"chunk_rwkv7": "fla-core"},
         "softmax": {"sdpa_cudnn": "torch", "sdpa_flash": "torch"}}
MOST_ERROR = 2e-2  # beyond it a kernel computes something else
# What a project's kernels leave out, by the project; those of others compute everything, up to rounding. Tables go by
# this and not by a record's own `exact`, which lines of before 2026-11-29 lack.
LEFT_OUT = {"FlashQLA": "FlashQLA cuts a head into segments and drops what the state was before a warm-up whose log gates "
                        "sum to -10; it drops nothing of a head without gates"}


def exactness(peer):
    """Returns what a record of this project says about it: whether it is exact and, if not, what it leaves out."""
    return {"exact": False, "left_out": LEFT_OUT[peer]} if peer in LEFT_OUT else {"exact": True}
