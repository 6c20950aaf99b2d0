// SPDX-License-Identifier: Apache-2.0
// Ring Attention for causal softmax attention, with contiguous tokens or with zigzag tokens that balance the work.
//
//   held = K | V of this rank;  (out, lse) = attention over the own block
//   for i = 1 .. P-1:  hop;  held is now the block of rank r-i
//     if any of it is visible:  (out, lse) = merge of (out, lse) and attention over it
//   backward, in the same turn, from out and lse of the whole sequence:  dK | dV of a block start at its own rank, go
//     one block behind it, take a part from every rank that sees it, and come home
//
// Keys and values travel in the tensors' type, their gradients in f32: P parts are added up, and dq and the output with
// them, before anything is rounded.
// Cost: forward P-1 hops of tokens*heads*(d_k+d_v) elements; backward the same and P hops of gradients, and at most P
// hops wait for one another. Contiguous tokens leave the ranks idle for half of the time, zigzag tokens do not.
// Source: arXiv 2310.01889 (Ring Attention); zhuzilin/ring-flash-attention, ring_flash_attn.py and
// zigzag_ring_flash_attn.py.
#include "sp_methods/kernels/host/softmax/gradients.hpp"
#include "sp_methods/layer_steps.hpp"
#include "sp_methods/ring.hpp"

namespace baton {
namespace {

/// Where the tokens of a rank stand.
using Layout = Positions (*)(int rank, int ranks, std::int64_t tokens);

Positions contiguous(int rank, int, std::int64_t tokens) { return contiguous_positions(rank, tokens); }

Positions zigzag(int rank, int ranks, std::int64_t tokens) { return zigzag_positions(rank, ranks, tokens); }

SoftmaxInputs softmax_inputs(const HostOperands& m) {
  return {m.reads[0].data(), m.reads[1].data(), m.reads[2].data()};
}

class SoftmaxRing {
 public:
  SoftmaxRing(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        share_(layer.share),
        x_(x),
        layout_(layout),
        element_(bytes_of(layer.dtype)),
        blocks_(s, "blocks", s.ranks() > 1 ? key_value_elements(share_) : 0, layer.dtype),
        out_(layer.pass == Pass::backward ? saved_for_backward(s, layer, "out", values())
                                          : sums_of(s, x.o, "out")),
        lse_(saved_for_backward(s, layer, "lse", rows())) {}

  void forward() {
    const int P = s_.ranks();
    const Slice block_out = s_.scratch("block_out", P > 1 ? values() : 0);
    const Slice block_lse = s_.scratch("block_lse", P > 1 ? rows() : 0);
    pack_own();
    for (int i = 0; i < P; ++i) {
      const RingBlock block = held_block(i);
      if (i + 1 < P) blocks_.hop();
      wait_if_exposed(s_, layer_);
      if (i == 0) attend(out_, lse_, block, i);
      if (i > 0 && is_visible(i)) {
        attend(block_out, block_lse, block, i);
        merge(block_out, block_lse, i);
      }
      wait_if_exposed(s_, layer_);
    }
    set(s_, x_.o, out_);
  }

  void backward() {
    const int P = s_.ranks();
    Ring gradients(s_, "gradients", key_value_elements(share_));
    const Slice part = s_.scratch("part", P > 1 ? key_value_elements(share_) : 0);
    const Slice delta = s_.scratch("delta", rows());
    dq_ = sums_of(s_, x_.dq, "dq_sums");
    pack_own();
    start(delta);
    for (int i = 0; i < P; ++i) {
      const RingBlock block = held_block(i);
      if (i + 1 < P) blocks_.hop();
      if (i > 0) gradients.hop();
      wait_if_exposed(s_, layer_);
      // The sum that travels may still be on its way: what is added to it is computed apart from it.
      if (i == 0) add_gradients(gradients.held(), block, delta, i);
      if (i > 0 && is_visible(i)) {
        add_gradients(part, block, delta, i);
        add(s_, gradients.held(), part);
      }
      wait_if_exposed(s_, layer_);
    }
    gradients.hop();
    wait_if_exposed(s_, layer_);
    const RingBlock home = block_in(gradients.held(), share_);
    set(s_, x_.dq, dq_);
    set(s_, x_.dk, home.k);
    set(s_, x_.dv, home.v);
  }

 private:
  std::int64_t rows() const { return share_.tokens * share_.heads; }
  std::int64_t values() const { return rows() * share_.d_v; }

  /// This rank's queries and the keys that come with hop i.
  SoftmaxShape shape(int i) const {
    const int P = s_.ranks(), r = s_.rank();
    return {share_.tokens,
            share_.tokens,
            share_.heads,
            share_.d_k,
            share_.d_v,
            layout_(r, P, share_.tokens),
            layout_((r - i + P) % P, P, share_.tokens)};
  }

  std::vector<std::int64_t> parameters(int i) const {
    std::vector<std::int64_t> all = ring_parameters(layer_);
    for (const Positions& p : {shape(i).q_positions, shape(i).k_positions})
      all.insert(all.end(), {p.first, p.second, p.split});
    return all;
  }

  /// Whether any query sees a key of that block: if one does, the last one does.
  bool is_visible(int i) const { return shape(i).visible(share_.tokens - 1) > 0; }

  /// Makes what this rank sends round.
  void pack_own() {
    if (s_.ranks() == 1) return;
    const RingBlock own = block_in(blocks_.held(), share_);
    s_.copy(own.k, x_.k);
    s_.copy(own.v, x_.v);
  }

  /// The block that came with hop i; the own one where it has always been.
  RingBlock held_block(int i) const {
    return i > 0 ? block_in(blocks_.held(), share_) : RingBlock{x_.k, x_.v, {}};
  }

  /// Sets out and lse to attention over one block.
  void attend(const Slice& out, const Slice& lse, const RingBlock& block, int i) {
    const auto body = [shape = shape(i)](const HostOperands& m) {
      softmax_block(m.writes[0].data(), m.writes[1].data(), softmax_inputs(m), shape);
    };
    s_.compute({"softmax_block", body, softmax_block_flops(shape(i)), softmax_block_bytes(shape(i), element_),
                parameters(i)},
               {out, lse}, {x_.q, block.k, block.v});
  }

  void merge(const Slice& block_out, const Slice& block_lse, int i) {
    const auto body = [shape = shape(i)](const HostOperands& m) {
      merge_softmax(m.writes[0].data(), m.writes[1].data(), m.reads[0].data(), m.reads[1].data(), shape);
    };
    s_.compute(
        {"merge_softmax", body, merge_softmax_flops(shape(i)), merge_softmax_bytes(shape(i)), parameters(i)},
        {out_, lse_}, {block_out, block_lse, out_, lse_});
  }

  /// What the backward pass needs once.
  void start(const Slice& delta) {
    const auto body = [shape = shape(0)](const HostOperands& m) {
      softmax_delta(m.writes[0].data(), m.reads[0].data(), m.reads[1].data(), shape);
    };
    s_.compute({"softmax_delta", body, softmax_delta_flops(shape(0)), softmax_delta_bytes(shape(0), element_),
                parameters(0)},
               {delta}, {x_.d_o, out_});
    fill(s_, dq_, 0.0F);
  }

  /// Adds one block's share to dq and sets `into` to its dK | dV.
  void add_gradients(const Slice& into, const RingBlock& block, const Slice& delta, int i) {
    const RingBlock out = block_in(into, share_);
    const auto body = [shape = shape(i)](const HostOperands& m) {
      softmax_block_gradients({m.writes[0].data(), m.writes[1].data(), m.writes[2].data()}, softmax_inputs(m),
                              {m.reads[3].data(), m.reads[4].data(), m.reads[5].data()}, shape);
    };
    fill(s_, into, 0.0F);
    s_.compute({"softmax_block_gradients", body, softmax_block_gradients_flops(shape(i)),
                softmax_block_gradients_bytes(shape(i), element_), parameters(i)},
               {dq_, out.k, out.v}, {x_.q, block.k, block.v, x_.d_o, lse_, delta, dq_, out.k, out.v});
  }

  Schedule& s_;
  const Layer& layer_;
  GlaShape share_;
  const LayerTensors& x_;
  Layout layout_;
  std::int64_t element_;  // bytes of the tensors'
  Ring blocks_;
  Slice out_;  // where this schedule makes it, the f32 sums of x.o
  Slice lse_;
  Slice dq_;
};

void ring_attention(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  SoftmaxRing ring(s, layer, x, layout);
  if (layer.pass != Pass::backward) ring.forward();
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output is not there before the output
  if (layer.pass != Pass::forward) ring.backward();
}

Refusal unsupported(const Layer& layer, Layout layout) {
  if (layer.share.gate != GateKind::none) return "softmax attention has no gates";
  if (layout == zigzag && layer.share.tokens % 2 != 0)
    return "zigzag gives each rank two equal pieces, and " + std::to_string(layer.share.tokens) +
           " tokens a rank are odd";
  return unsupported_in_a_ring(layer);
}

RegisteredMethod method(const std::string& name, const std::string& summary, Layout layout) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .build = [layout](Schedule& s, const Layer& layer,
                        const LayerTensors& x) { ring_attention(s, layer, x, layout); },
      .unsupported = [layout](const Layer& layer, int) { return unsupported(layer, layout); },
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
