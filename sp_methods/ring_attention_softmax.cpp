// SPDX-License-Identifier: Apache-2.0
// Ring Attention for causal softmax attention, with contiguous or zigzag tokens. Zigzag balances
// the work.
//
//   held = k | v of this rank;  (out, lse) = attention over the own block
//   for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//     if any of it is visible:  (out, lse) = merge of (out, lse) and attention over it
//   backward, in the same turn, from out and lse of the whole sequence:  dk | dv of a block start
//     at its own rank and circulate one hop behind it; every rank that sees the block adds its
//     gradients, and the last hop returns the sums to the owner
//
// Keys and values circulate in the tensors' type, their gradients in f32: the output, dq, and the
// gradients of P ranks are summed before they are rounded.
// Cost: forward P-1 hops of tokens*heads*(d_k+d_v) elements; backward the same and P hops of
// gradients. At most P hops wait for one another. Contiguous tokens leave the ranks idle for half
// of the time.
// Source: arXiv 2310.01889 (Ring Attention); zhuzilin/ring-flash-attention, ring_flash_attn.py and
// zigzag_ring_flash_attn.py.
#include "sp_methods/softmax_steps.hpp"

namespace baton {
namespace {

class SoftmaxRing {
 public:
  SoftmaxRing(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        share_(layer.share),
        x_(x),
        steps_(s, layer, layout),
        blocks_(s, "blocks", s.ranks() > 1 ? key_value_elements(share_) : 0, layer.dtype),
        result_{layer.pass == Pass::backward ? saved_for_backward(s, layer, "out", steps_.values())
                                             : sums_of(s, x.o, "out"),
                saved_for_backward(s, layer, "lse", steps_.rows())} {}

  void forward() {
    const int P = s_.ranks();
    const PartialOutput part{s_.scratch("block_out", P > 1 ? steps_.values() : 0),
                             s_.scratch("block_lse", P > 1 ? steps_.rows() : 0)};
    pack_own();
    for (int i = 0; i < P; ++i) {
      const RingBlock block = held_block(i);
      if (i + 1 < P) blocks_.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0) steps_.attend(result_, x_.q, block, pair(i));
      if (i > 0 && steps_.is_visible(pair(i))) {
        steps_.attend(part, x_.q, block, pair(i));
        steps_.merge(result_, part);
      }
      wait_if_exposed(s_, layer_);
    }
    set(s_, x_.o, result_.out);
  }

  void backward() {
    const int P = s_.ranks();
    Ring gradients(s_, "gradients", key_value_elements(share_));
    const Slice block_gradients = s_.scratch("part", P > 1 ? key_value_elements(share_) : 0);
    const QuerySide queries{x_.q, x_.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    dq_ = sums_of(s_, x_.dq, "dq_sums");
    pack_own();
    steps_.set_delta(queries.delta, x_.d_o, result_.out);
    fill(s_, dq_, 0.0F);
    for (int i = 0; i < P; ++i) {
      const RingBlock block = held_block(i);
      if (i + 1 < P) blocks_.hop();
      if (i > 0) gradients.hop();
      wait_if_exposed(s_, layer_);
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      if (i == 0) set_gradients(gradients.held(), queries, block, i);
      if (i > 0 && steps_.is_visible(pair(i))) {
        set_gradients(block_gradients, queries, block, i);
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
  /// This rank's queries and the keys that come with hop i.
  RankPair pair(int i) const { return {s_.rank(), (s_.rank() - i + s_.ranks()) % s_.ranks()}; }

  /// Makes the block that this rank sends.
  void pack_own() {
    if (s_.ranks() == 1) return;
    const RingBlock own = block_in(blocks_.held(), share_);
    s_.copy(own.k, x_.k);
    s_.copy(own.v, x_.v);
  }

  /// The block of hop i. That of hop 0 is read from the inputs.
  RingBlock held_block(int i) const {
    return i > 0 ? block_in(blocks_.held(), share_) : RingBlock{x_.k, x_.v, {}};
  }

  /// Adds the gradients of one block to dq, and sets `into` to dk | dv of the block.
  void set_gradients(const Slice& into, const QuerySide& queries, const RingBlock& block, int i) {
    fill(s_, into, 0.0F);
    steps_.add_gradients(dq_, block_in(into, share_), queries, block, pair(i));
  }

  Schedule& s_;
  const Layer& layer_;
  GlaShape share_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  Ring blocks_;
  PartialOutput result_;  // out is the f32 sums of x.o, or an input of the backward pass
  Slice dq_;              // f32 sums
};

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  SoftmaxRing ring(s, layer, x, layout);
  if (layer.pass != Pass::backward) ring.forward();
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (layer.pass != Pass::forward) ring.backward();
}

/// Blocks make P-1 hops in each pass; gradients make P, one behind the blocks.
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const int P = split.ranks;
  const std::int64_t elements = key_value_elements(layer.share);
  const Cost blocks{(P - 1) * elements * bytes_of(layer.dtype), P - 1};
  Cost cost;
  if (P == 1) return cost;
  if (layer.pass != Pass::backward) cost = blocks;
  if (layer.pass == Pass::forward) return cost;
  cost.sent_bytes += blocks.sent_bytes + P * elements * bytes_of(Dtype::f32);
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
};

}  // namespace
}  // namespace baton
