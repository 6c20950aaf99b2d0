// SPDX-License-Identifier: Apache-2.0
// Ring Attention for causal softmax attention, with contiguous, zigzag or striped tokens. The last
// two balance the work.
//
//   forward:  (out, lse) as in softmax_ring.hpp
//   backward: k | v of all ranks circulate again, from out and lse of the whole sequence:  dk | dv
//     of a block start at its own rank and circulate one hop behind it; every rank that sees the
//     block adds its gradients, and the last hop returns the sums to the owner
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

class RingGradients {
 public:
  RingGradients(Schedule& s, const Layer& layer, const LayerTensors& x, SoftmaxSteps& steps)
      : s_(s), layer_(layer), share_(layer.share), x_(x), steps_(steps) {}

  void backward(KeyRing& keys, const PartialOutput& result) {
    const int P = s_.ranks();
    Ring gradients(s_, "gradients", key_value_elements(share_));
    const Slice block_gradients = s_.scratch("part", P > 1 ? key_value_elements(share_) : 0);
    const QuerySide queries{x_.q, x_.d_o, result.lse, s_.scratch("delta", steps_.rows())};
    dq_ = sums_of(s_, x_.dq, "dq_sums");
    keys.start();
    steps_.set_delta(queries.delta, x_.d_o, result.out);
    fill(s_, dq_, 0.0F);
    for (int i = 0; i < P; ++i) {
      const RingBlock block = keys.held(i);
      if (i + 1 < P) keys.hop();
      if (i > 0) gradients.hop();
      wait_if_exposed(s_, layer_);
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      if (i == 0) set_gradients(gradients.held(), queries, block, keys.pair(i));
      if (i > 0 && steps_.is_visible(keys.pair(i))) {
        set_gradients(block_gradients, queries, block, keys.pair(i));
        add(s_, gradients.held(), block_gradients);
      }
      wait_if_exposed(s_, layer_);
    }
    gradients.hop();
    wait_if_exposed(s_, layer_);
    const RingBlock returned = block_in(gradients.held(), share_);
    set(s_, x_.dq, dq_);
    set(s_, x_.dk, returned.k);
    set(s_, x_.dv, returned.v);
  }

 private:
  /// Adds the gradients of one block to dq, and sets `into` to dk | dv of the block.
  void set_gradients(const Slice& into, const QuerySide& queries, const RingBlock& block, RankPair pair) {
    fill(s_, into, 0.0F);
    steps_.add_gradients(dq_, block_in(into, share_), queries, block, pair);
  }

  Schedule& s_;
  const Layer& layer_;
  const GlaShape& share_;
  const LayerTensors& x_;
  SoftmaxSteps& steps_;
  Slice dq_;  // f32 sums
};

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

RegisteredMethod method(const std::string& name, const std::string& summary, Layout layout) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .build = [layout](Schedule& s, const Layer& layer,
                        const LayerTensors& x) { ring_attention(s, layer, x, layout); },
      .claim = claim,
      .unsupported = [layout](const Layer& layer, int) { return unsupported_softmax(layer, layout); },
      .positions = layout,
  });
}

const RegisteredMethod registered[]{
    method("ring_attention_softmax", "keys and values around the ring, softmax, contiguous tokens",
           contiguous),
    method("ring_attention_zigzag", "keys and values around the ring, softmax, zigzag tokens", zigzag),
    method("ring_attention_striped", "keys and values around the ring, softmax, striped tokens", striped),
};

}  // namespace
}  // namespace baton
