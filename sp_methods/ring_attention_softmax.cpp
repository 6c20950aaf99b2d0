// SPDX-License-Identifier: Apache-2.0
// Ring Attention for causal softmax attention, with contiguous, zigzag or striped tokens. The last
// two balance the work.
//
//   the passes of softmax_ring.hpp: k | v of all ranks circulate, and backward dk | dv behind them
//
// Keys and values circulate in the tensors' type, their gradients in f32: the output, dq, and the
// gradients of P ranks are summed before they are rounded.
// Cost: forward P-1 hops of tokens*kv_heads*(d_k+d_v) elements; backward the same and P hops of
// gradients. At most P hops wait for one another. Contiguous tokens leave the ranks idle for half
// of the time.
// Source: arXiv 2310.01889 (Ring Attention); arXiv 2311.09431 (Striped Attention);
// zhuzilin/ring-flash-attention, ring_flash_attn.py, zigzag_ring_flash_attn.py and
// stripe_flash_attn.py.
#include "sp_methods/softmax_ring.hpp"

namespace baton {
namespace {

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  SoftmaxSteps steps(s, layer, layout);
  KeyRing keys(s, layer, x);
  const PartialOutput result = steps.result(x.o);
  if (layer.pass != Pass::backward) ring_forward(s, layer, x, steps, keys, result);
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (layer.pass != Pass::forward) RingGradients(s, layer, x, steps).backward(keys, result);
}

/// Blocks make P-1 hops in each pass; gradients make P, one behind the blocks.
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const int P = split.ranks;
  Cost cost;
  if (P == 1) return cost;
  const Cost blocks = key_ring_cost(layer, P);
  if (layer.pass != Pass::backward) cost = blocks;
  if (layer.pass == Pass::forward) return cost;
  cost.sent_bytes += blocks.sent_bytes + P * key_value_elements(layer.share) * bytes_of(Dtype::f32);
  cost.hops += layer.mode == Mode::exposed ? P + 1 : P;
  return cost;
}

const RegisteredMethod registered[]{
    softmax_method("ring_attention_softmax", "keys and values around the ring, softmax, contiguous tokens",
                   contiguous, ring_attention, claim),
    softmax_method("ring_attention_zigzag", "keys and values around the ring, softmax, zigzag tokens", zigzag,
                   ring_attention, claim),
    softmax_method("ring_attention_striped", "keys and values around the ring, softmax, striped tokens",
                   striped, ring_attention, claim),
};

}  // namespace
}  // namespace baton
