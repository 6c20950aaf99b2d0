// SPDX-License-Identifier: Apache-2.0
// All-gather of keys and values for softmax attention, with contiguous or zigzag tokens.
// Zigzag balances the work.
//
//   the passes of softmax_gather.hpp: k, v of all ranks are gathered by head groups, each under
//   the attention of the one before, and backward dk, dv are reduced and scattered
//
// Cost: forward P-1 blocks of tokens*kv_heads*(d_k+d_v) elements, or of tokens*d_k for a head of
// latent keys, and the hops of the all-gather; backward as many elements of gradients and the hops
// of the reduce-scatter.
// Source: arXiv 2502.07563 (LASP-2H), algorithm 7; arXiv 2407.21783 (Llama 3), section 3.3.2;
// zhuzilin/ring-flash-attention, llama3_flash_attn_varlen.py.
#include "sp_methods/passes/softmax_gather.hpp"

namespace baton {
namespace {

RegisteredMethod method(const std::string& name, const std::string& summary, const GatherNames& names,
                        Layout layout) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .packs = true,
      .shares_unequally = true,
      .build =
          [&names, layout](Schedule& s, const Layer& layer, const LayerTensors& x) {
            GatheredSoftmax method(s, layer, x, layout, names);
            run_passes(s, layer, method);
          },
      .claim = [&names, layout](
                   const Layer& layer,
                   const Split& split) { return gathered_softmax_cost(layer, split.ranks, layout, names); },
      .unsupported = [layout](const Layer& layer, int) { return unsupported_gathering(layer, layout); },
      .layout = layout,
  });
}

const RegisteredMethod registered[]{
    method("all_gather_kv", "all-gather of keys and values, softmax, contiguous tokens", ring_gathers,
           contiguous),
    method("all_gather_kv_zigzag", "all-gather of keys and values, softmax, zigzag tokens", ring_gathers,
           zigzag),
    method("all_gather_kv_direct", "all-gather of keys and values in one hop, softmax, zigzag tokens",
           direct_gathers, zigzag),
};

}  // namespace
}  // namespace baton
