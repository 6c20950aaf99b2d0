// SPDX-License-Identifier: Apache-2.0
// Ring Attention for softmax attention with BurstAttention's backward pass: queries
// circulate and come home with their gradients, keys and values stay.
//
//   forward:  (out, lse) as in softmax_ring.hpp, zigzag tokens
//   backward, from out and lse of the whole sequence:
//     delta = rowsum(d_o (.) out);  held = q | d_o and lse | delta of this rank
//     dk, dv, dq = gradients of the own queries over the own keys
//     for i = 1 .. P-1:  hop;  held is now of rank r-i;  dq circulates one hop behind
//       if these queries see any own key:  dk, dv, dq += their gradients over the own keys
//     the last hop returns dq to the owner of the queries
//
// q and d_o circulate in the tensors' type; lse, delta and dq in f32, as dk and dv in the other
// backward pass.
// Cost: forward P-1 hops of tokens*kv_heads*(d_k+d_v) elements; backward P-1 hops of
// tokens*heads*(d_k+d_v+2) and P hops of tokens*heads*d_k. What the other backward pass sends grows
// with kv_heads. With d_k = d_v and many ranks both send as much at kv_heads/heads = 3/4 where all
// elements have one size, as published and as in f32, and at 2/3 where q, k, v and d_o are bf16 and
// gradients f32. With grouped heads, at most 1/2, this pass sends more.
// Source: arXiv 2403.09347 (BurstAttention); arXiv 2509.19836 (BurstEngine).
#include "sp_methods/passes/softmax_ring.hpp"

namespace baton {
namespace {

/// Queries of all ranks, which circulate with the tensors that their gradients need.
class QueryRing {
 public:
  QueryRing(Schedule& s, const Layer& layer, const QuerySide& own)
      : s_(s),
        own_(own),
        rows_(own.lse.count),
        tensors_(s, "queries", s.ranks() > 1 ? own.q.count + own.d_o.count : 0, layer.dtype),
        numbers_(s, "query_numbers", s.ranks() > 1 ? 2 * rows_ : 0) {}

  /// Makes the queries that this rank sends.
  void start() {
    if (s_.ranks() == 1) return;
    const QuerySide sent = circulating();
    s_.copy(sent.q, own_.q);
    s_.copy(sent.d_o, own_.d_o);
    s_.copy(sent.lse, own_.lse);
    s_.copy(sent.delta, own_.delta);
  }
  /// The queries that this rank holds after hop i. The queries of hop 0 are its own.
  QuerySide held(int i) const { return i > 0 ? circulating() : own_; }
  void hop() {
    tensors_.hop();
    numbers_.hop();
  }

 private:
  QuerySide circulating() const {
    const Slice tensors = tensors_.held(), numbers = numbers_.held();
    return {tensors.part(0, own_.q.count), tensors.part(own_.q.count, own_.d_o.count), numbers.part(0, rows_),
            numbers.part(rows_, rows_)};
  }

  Schedule& s_;
  QuerySide own_;
  std::int64_t rows_;
  Ring tensors_, numbers_;
};

void backward(Schedule& s, const Layer& layer, const LayerTensors& x, SoftmaxSteps& steps,
              const PartialOutput& result) {
  const int P = s.ranks(), r = s.rank();
  const QuerySide own{x.q, x.d_o, result.lse, s.scratch("delta", steps.rows())};
  QueryRing queries(s, layer, own);
  Ring gradients(s, "gradients", x.dq.count);
  const Slice part = s.scratch("part", P > 1 ? x.dq.count : 0);
  const RingBlock sums{sums_of(s, x.dk, "dk_sums"), sums_of(s, x.dv, "dv_sums"), {}};
  steps.set_delta(own.delta, x.d_o, result.out);
  queries.start();
  fill(s, sums.k, 0.0F);
  fill(s, sums.v, 0.0F);
  for (int i = 0; i < P; ++i) {
    const QuerySide held = queries.held(i);
    const RankPair pair{(r - i + P) % P, r};
    if (i + 1 < P) queries.hop();
    if (i > 0) gradients.hop();
    wait_if_exposed(s, layer);
    if (i == 0 || steps.is_visible(pair)) {
      // The circulating sums may not have arrived yet: the gradients are computed apart from them.
      const Slice into = i == 0 ? gradients.held() : part;
      fill(s, into, 0.0F);
      steps.add_gradients(into, sums, held, {x.k, x.v, {}}, pair);
      if (i > 0) add(s, gradients.held(), part);
    }
    wait_if_exposed(s, layer);
  }
  gradients.hop();
  wait_if_exposed(s, layer);
  set_gradients(s, x, {gradients.held(), sums});
}

void burst(Schedule& s, const Layer& layer, const LayerTensors& x) {
  SoftmaxSteps steps(s, layer, zigzag);
  const PartialOutput result = steps.result(x.o);
  if (layer.pass != Pass::backward) {
    KeyRing keys(s, layer, x, steps);
    ring_forward(s, layer, x, steps, keys, result);
  }
  if (layer.pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (layer.pass != Pass::forward) backward(s, layer, x, steps, result);
}

/// Claimed cost. In a backward pass queries make P-1 hops and their gradients P, one behind them.
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const int P = split.ranks;
  const LayerShape& share = layer.share;
  const std::int64_t rows = share.tokens * share.heads;
  Cost cost;
  if (P == 1) return cost;
  if (layer.pass != Pass::backward) cost = key_ring_cost(layer, P, zigzag);
  if (layer.pass == Pass::forward) return cost;
  const std::int64_t queries = (share.d_k + share.d_v) * bytes_of(layer.dtype) + 2 * bytes_of(Dtype::f32);
  cost.sent_bytes += rows * ((P - 1) * queries + P * share.d_k * bytes_of(Dtype::f32));
  cost.hops += layer.mode == Mode::exposed ? P + 1 : P;
  return cost;
}

const RegisteredMethod registered{{
    .name = "ring_attention_burst",
    .summary = "as zigzag; backward queries and their gradients around the ring",
    .attention = Attention::softmax,
    .packs = true,
    .build = burst,
    .claim = claim,
    .unsupported = [](const Layer& layer, int) { return unsupported_softmax(layer, zigzag); },
    .layout = zigzag,
}};

}  // namespace
}  // namespace baton
