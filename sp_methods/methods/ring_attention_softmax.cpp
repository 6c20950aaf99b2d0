// SPDX-License-Identifier: Apache-2.0
// Ring Attention for softmax attention, with contiguous, zigzag or striped tokens. The last
// two balance the work.
//
//   the passes of softmax_ring.hpp: k | v of all ranks circulate, and backward dk | dv behind them
//   tokens of rank r:  zigzag, pieces r and 2P-1-r of 2P;  striped, r, r + P, r + 2P and so on
//
// Keys and values circulate in the tensors' type, their gradients in f32: the output, dq, and the
// gradients of P ranks are summed before they are rounded.
// Cost: forward P-1 hops of tokens*kv_heads*(d_k+d_v) elements; backward the same and P hops of
// gradients. At most P hops wait for one another. Contiguous tokens leave the ranks idle for half
// of the time.
// Source: arXiv 2310.01889 (Ring Attention); arXiv 2311.09431 (Striped Attention);
// zhuzilin/ring-flash-attention, ring_flash_attn.py, zigzag_ring_flash_attn.py and
// stripe_flash_attn.py.
#include "sp_methods/passes/softmax_ring.hpp"

namespace baton {
namespace {

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  RingSoftmax method(s, layer, x, layout);
  run_passes(s, layer, method);
}

RegisteredMethod method(const std::string& name, const std::string& summary, Layout layout) {
  return softmax_method(
      name, summary, layout, ring_attention,
      [layout](const Layer& layer, const Split& split) {
        return ring_softmax_cost(layer, split.ranks, layout);
      },
      true);
}

const RegisteredMethod registered[]{
    method("ring_attention_softmax", "keys and values around the ring, softmax, contiguous tokens",
           contiguous),
    method("ring_attention_zigzag", "keys and values around the ring, softmax, zigzag tokens", zigzag),
    method("ring_attention_striped", "keys and values around the ring, softmax, striped tokens", striped),
};

}  // namespace
}  // namespace baton
