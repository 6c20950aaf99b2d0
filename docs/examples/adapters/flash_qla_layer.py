# SPDX-License-Identifier: Apache-2.0
"""FlashQLA, which drops old states of some heads: python3 flash_qla_layer.py --executor nccl --ranks 1 --tokens 16K"""

import importlib

import baton


@baton.method("flash_qla", attention="gdn", backward="autograd", needs="flash_qla", most_ranks=1, summary="FlashQLA, not exact")
def flash_qla(layer):
    function = importlib.import_module("flash_qla").chunk_gated_delta_rule
    q, k, v, g, beta = (x[None] for x in (layer.q, layer.k, layer.v, layer.g, layer.beta))  # [1, tokens, heads, d]
    return function(q, k, v, g.squeeze(-1).float(), beta.squeeze(-1))[0]


baton.main()
