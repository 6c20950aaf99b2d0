// SPDX-License-Identifier: Apache-2.0
// All-gather of keys and values for causal softmax attention, with contiguous or zigzag tokens. Zigzag
// balances the work.
//
//   k, v of the whole sequence = all-gather of the own ones, in the order of the sequence
//   (out, lse) = attention of the own queries over the keys up to the last that they see
//   backward:  dk, dv of the whole sequence = gradients of the own queries, zero where none sees
//              own dk, dv = reduce-scatter of these
//
// A zigzag rank has a piece of the front and its mirror from the back. The fronts are gathered in
// rank order and the backs in reverse, so that all keys lie in the order of the sequence.
// Keys and values travel in the tensors' type, their gradients in f32. The backward pass reads what
// the forward pass has gathered; alone it gathers again.
// Cost: forward P-1 blocks of tokens*heads*(d_k+d_v) elements and the hops of the all-gather;
// backward as many elements of gradients and the hops of the reduce-scatter.
// Source: arXiv 2502.07563 (LASP-2H), algorithm 7; arXiv 2407.21783 (Llama 3), section 3.3.2;
// zhuzilin/ring-flash-attention, llama3_flash_attn_varlen.py.
#include "sp_methods/gathers.hpp"
#include "sp_methods/softmax_steps.hpp"

namespace baton {
namespace {

class GatheredSoftmax {
 public:
  GatheredSoftmax(Schedule& s, const Layer& layer, const LayerTensors& x, const GatherNames& names,
                  Layout layout)
      : s_(s),
        layer_(layer),
        x_(x),
        names_(names),
        pieces_(layout == zigzag ? 2 : 1),
        steps_(s, layer, layout),
        shape_(steps_.shape({s.rank(), s.rank()})),
        all_(keys_and_values_of_all(s, x, s.ranks())),
        result_(steps_.result(x.o)) {
    shape_.k_tokens = shape_.q_positions.at(shape_.q_tokens - 1) + 1;
    shape_.k_positions = contiguous_positions(0, shape_.k_tokens);
    visible_ = visible_of(all_);
  }

  void forward() {
    gather_keys();
    wait_if_exposed(s_, layer_);
    record<SoftmaxBlock>(s_, shape_,
                         {.in = {x_.q, visible_.k, visible_.v}, .out = result_.out, .lse = result_.lse});
    set(s_, x_.o, result_.out);
  }

  void backward() {
    if (layer_.pass == Pass::backward) gather_keys();
    const Slice delta = s_.scratch("delta", steps_.rows());
    const Slice dq = sums_of(s_, x_.dq, "dq_sums");
    const RingBlock sums{s_.scratch("dk_sums", all_.k.count), s_.scratch("dv_sums", all_.v.count), {}};
    const RingBlock seen = visible_of(sums);
    steps_.set_delta(delta, x_.d_o, result_.out);
    for (const Slice& sum : {dq, sums.k, sums.v}) fill(s_, sum, 0.0F);
    wait_if_exposed(s_, layer_);
    record<SoftmaxBlockGradients>(s_, shape_,
                                  {.in = {x_.q, visible_.k, visible_.v},
                                   .d_o = x_.d_o,
                                   .lse = result_.lse,
                                   .delta = delta,
                                   .dq = dq,
                                   .dk = seen.k,
                                   .dv = seen.v});
    wait_if_exposed(s_, layer_);
    scatter_gradients(x_.dk, sums.k, "dk_own");
    scatter_gradients(x_.dv, sums.v, "dv_own");
    set(s_, x_.dq, dq);
  }

 private:
  /// The part of tensors of the whole sequence that the own queries see.
  RingBlock visible_of(const RingBlock& all) const {
    const std::int64_t tokens = s_.ranks() * layer_.share.tokens;
    return {all.k.part(0, all.k.count / tokens * shape_.k_tokens),
            all.v.part(0, all.v.count / tokens * shape_.k_tokens),
            {}};
  }

  void gather_keys() {
    for_pieces([&](int i) {
      gather(s_, names_, all_.k.block(i, pieces_), x_.k.block(i, pieces_));
      gather(s_, names_, all_.v.block(i, pieces_), x_.v.block(i, pieces_));
    });
  }

  /// Sets the gradient `into` of the own tokens to the sum of those of all ranks.
  void scatter_gradients(const Slice& into, const Slice& all, std::string name) {
    const Slice own = sums_of(s_, into, std::move(name));
    for_pieces([&](int i) { scatter(s_, names_, own.block(i, pieces_), all.block(i, pieces_)); });
    set(s_, into, own);
  }

  /// Calls body(i) for each piece of a rank. While it is called for the back one, ranks count from
  /// the other end.
  template <class Body>
  void for_pieces(const Body& body) {
    body(0);
    if (pieces_ == 1) return;
    const Reversed backs(s_);
    body(1);
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  const GatherNames& names_;
  int pieces_;  // runs of the sequence that a rank holds
  SoftmaxSteps steps_;
  SoftmaxShape shape_;  // the own queries and the keys up to the last that they see
  RingBlock all_;       // keys and values of the whole sequence
  RingBlock visible_;   // those of them that shape_ names
  PartialOutput result_;
};

void build(Schedule& s, const Layer& layer, const LayerTensors& x, const GatherNames& names, Layout layout) {
  GatheredSoftmax method(s, layer, x, names, layout);
  if (layer.pass != Pass::backward) method.forward();
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (layer.pass != Pass::forward) method.backward();
}

std::optional<Cost> claim(const Layer& layer, const Split& split, const GatherNames& names) {
  const int P = split.ranks;
  const std::int64_t elements = (P - 1) * key_value_elements(layer.share);
  Cost cost{elements * bytes_of(layer.dtype), names.gather_hops(P)};
  if (layer.pass == Pass::forward) return cost;
  cost.sent_bytes += elements * bytes_of(Dtype::f32);
  cost.hops += names.scatter_hops(P);
  return cost;
}

RegisteredMethod method(const std::string& name, const std::string& summary, const GatherNames& names,
                        Layout layout) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .build = [&names, layout](Schedule& s, const Layer& layer,
                                const LayerTensors& x) { build(s, layer, x, names, layout); },
      .claim = [&names](const Layer& layer, const Split& split) { return claim(layer, split, names); },
      .unsupported = [layout](const Layer& layer, int) { return unsupported_softmax(layer, layout); },
      .positions = layout,
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
