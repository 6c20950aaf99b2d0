// SPDX-License-Identifier: Apache-2.0
// TokenRing for softmax attention, with contiguous or zigzag tokens: queries travel, keys
// and values stay.
//
//   turn 0:            (out, lse) = attention of the own queries over the own keys
//   turn t = 1 .. P-1: held is now q of rank r+t (modulo P), as much of it as sees the own keys
//     part = attention of held over the own keys
//     under the work of turn t:    held moves on to rank r-1
//     under the work of turn t+1:  part goes straight to rank r+t;  what rank r-t has made of this
//                                  rank's queries arrives, and is merged into (out, lse)
//   backward, in the same turns:  q, d_o, lse and delta travel, dq of each stop goes straight back,
//     dk and dv add up where their keys lie
//
// Under a causal mask queries that see no key of a stop see none of a later one, and do not travel
// there: zigzag tokens leave their first half at rank 0, contiguous ones end there. Keys and values
// never travel, so the backward pass sends no sums round the ring. It is our own: the paper and its
// code have none.
//
// Cost: without a mask a rank sends q to P-1 others, and as many results. Zigzag tokens need 3/4 of
// that, on average over the ranks, and contiguous ones half; rank 1, or rank 0 if results are
// larger, sends most. Results are f32 with lse, where the code sends out in the tensors' type.
// Contiguous tokens keep rank 0 at work for P turns and the last rank for one. Messages of at most
// P+1 turns wait for one another.
// Source: arXiv 2412.20501 (TokenRing); ACA-Lab-SJTU/token-ring, zigzag_token_ring.py.
#include <algorithm>
#include <array>

#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {
namespace {

class TokenRing {
 public:
  TokenRing(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout)
      : s_(s),
        layer_(layer),
        share_(layer.share),
        x_(x),
        steps_(s, layer, layout),
        result_(steps_.result(x.o)) {}

  void forward() {
    own_ = {.q = x_.q, .d_o = {}, .lse = {}, .delta = {}};
    make_room("forward_", share_.heads * (share_.d_v + 1));
    run_in_turns(s_, layer_, s_.ranks() - 1, *this);
    set(s_, x_.o, result_.out);
  }

  void backward() {
    is_backward_ = true;
    own_ = {x_.q, x_.d_o, result_.lse, s_.scratch("delta", steps_.rows())};
    make_room("backward_", share_.heads * share_.d_k);
    sums_ = zero_gradients(s_, x_);
    steps_.set_delta(own_.delta, x_.d_o, result_.out);
    run_in_turns(s_, layer_, s_.ranks() - 1, *this);
    set_gradients(s_, x_, sums_);
  }

  /// Sends the held queries on around the ring, and receives the queries of turn t.
  void fetch(int t) {
    const int next = rank_at(-1), before = rank_at(1);
    const auto leave = members(held(t - 1, steps_.seeing({rank_at(t - 1), next})));
    const auto arrive = members(held(t, tokens_in(t)));
    for (std::size_t i = 0; i < leave.size(); ++i) {
      if (!leave[i].empty()) s_.send(next, leave[i]);
      if (!arrive[i].empty()) s_.recv(arrive[i], before);
    }
  }

  void work(int t) {
    const std::int64_t tokens = tokens_in(t);
    if (tokens == 0) return;
    const RankPair pair{rank_at(t), s_.rank()};
    const RingBlock own{x_.k, x_.v, {}};
    const QuerySide queries = held(t, tokens);
    const Slice part = parts_[t % 2].part(0, t > 0 ? tokens * part_width_ : 0);
    if (!is_backward_) return steps_.attend(t > 0 ? output_in(part) : result_, queries.q, own, pair);
    fill(s_, part, 0.0F);
    steps_.add_gradients(t > 0 ? part : sums_.dq, sums_.block, queries, own, pair);
  }

  /// Sends the result of turn t to the rank of its queries, and receives one of this rank's.
  void give_back(int t) {
    const std::int64_t leave = tokens_in(t) * part_width_, arrive = returned_in(t) * part_width_;
    if (leave > 0) s_.send(rank_at(t), parts_[t % 2].part(0, leave));
    if (arrive > 0) s_.recv(returned_.part(0, arrive), rank_at(-t));
  }

  void merge(int t) {
    const std::int64_t tokens = returned_in(t), rows = tokens * share_.heads;
    if (tokens == 0) return;
    const Slice part = returned_.part(0, tokens * part_width_);
    if (is_backward_) return add(s_, last(sums_.dq, part.count), part);
    steps_.merge({last(result_.out, rows * share_.d_v), last(result_.lse, rows)}, output_in(part));
  }

 private:
  int rank_at(int distance) const { return (s_.rank() + distance + s_.ranks()) % s_.ranks(); }

  /// Number of queries that this rank works on in turn t.
  std::int64_t tokens_in(int t) const { return steps_.seeing({rank_at(t), s_.rank()}); }
  /// Number of this rank's queries that another rank works on in turn t.
  std::int64_t returned_in(int t) const { return steps_.seeing({s_.rank(), rank_at(-t)}); }

  /// Makes room for the queries of two turns, and for their results.
  void make_room(const std::string& pass, std::int64_t part_width) {
    const bool alone = s_.ranks() == 1;
    const auto room = [&](const std::string& name, const Slice& like) {
      return s_.scratch(pass + name, alone ? 0 : like.count, like.dtype);
    };
    part_width_ = part_width;
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i);
      held_[i] = {room("q_" + number, own_.q), room("d_o_" + number, own_.d_o),
                  room("lse_" + number, own_.lse), room("delta_" + number, own_.delta)};
      parts_[i] = s_.scratch(pass + "part_" + number, alone ? 0 : share_.tokens * part_width);
    }
    returned_ = s_.scratch(pass + "returned", alone ? 0 : share_.tokens * part_width);
  }

  static std::array<Slice, 4> members(const QuerySide& x) { return {x.q, x.d_o, x.lse, x.delta}; }

  /// The last `tokens` queries that this rank holds in turn t.
  QuerySide held(int t, std::int64_t tokens) const {
    const QuerySide& all = t == 0 ? own_ : held_[t % 2];
    const auto last_of = [&](const Slice& x) { return last(x, x.count / share_.tokens * tokens); };
    return {last_of(all.q), last_of(all.d_o), last_of(all.lse), last_of(all.delta)};
  }

  PartialOutput output_in(const Slice& part) const {
    const std::int64_t values = part.count / part_width_ * share_.heads * share_.d_v;
    return {part.part(0, values), part.part(values, part.count - values)};
  }

  Schedule& s_;
  const Layer& layer_;
  LayerShape share_;
  const LayerTensors& x_;
  SoftmaxSteps steps_;
  PartialOutput result_;
  bool is_backward_ = false;
  QuerySide own_, held_[2];
  std::int64_t part_width_ = 0;  // elements that a result has for each token
  Slice parts_[2], returned_;
  GradientSums sums_;
};

void token_ring(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout) {
  TokenRing ring(s, layer, x, layout);
  run_passes(s, layer, ring);
}

/// Bytes of one token: its queries round the ring, and its results on their way back.
struct TokenBytes {
  std::int64_t queries = 0, results = 0;
};

TokenBytes token_bytes(const Layer& layer) {
  const LayerShape& share = layer.share;
  const std::int64_t number = bytes_of(Dtype::f32);
  TokenBytes bytes;
  if (layer.pass != Pass::backward) {
    bytes.queries += share.heads * share.d_k * bytes_of(layer.dtype);
    bytes.results += share.heads * (share.d_v + 1) * number;
  }
  if (layer.pass == Pass::forward) return bytes;
  bytes.queries += share.heads * ((share.d_k + share.d_v) * bytes_of(layer.dtype) + 2 * number);
  bytes.results += share.heads * share.d_k * number;
  return bytes;
}

/// Claimed cost. The busiest rank is rank 1, whose neighbour needs all queries of all later ranks,
/// or rank 0, which sends back the most results.
template <Layout layout>
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const int P = split.ranks;
  if (P == 1) return Cost{};
  const std::int64_t all = layer.share.tokens;
  const std::int64_t causal = layout == zigzag ? all / 2 : 0;
  const std::int64_t wrapped = layer.mask.kind == MaskKind::full ? all : causal;
  const TokenBytes bytes = token_bytes(layer);
  const std::int64_t of_0 = (P - 1) * (wrapped * bytes.queries + all * bytes.results);
  const std::int64_t of_1 = (P - 1) * all * bytes.queries + ((P - 2) * all + wrapped) * bytes.results;
  const int passes = layer.pass == Pass::both ? 2 : 1;
  return Cost{std::max(of_0, of_1), passes * (P == 2 ? 2 : P + 1)};
}

template <Layout layout>
RegisteredMethod method(const std::string& name, const std::string& summary) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .build = [](Schedule& s, const Layer& layer,
                  const LayerTensors& x) { token_ring(s, layer, x, layout); },
      .claim = claim<layout>,
      .unsupported = [](const Layer& layer, int) -> Refusal {
        if (layer.mask.has_window())
          return "its queries stop at the first rank whose keys they do not see, and a window may hide that "
                 "rank's keys alone";
        return unsupported_softmax(layer, layout);
      },
      .layout = layout,
  });
}

const RegisteredMethod registered[]{
    method<contiguous>("token_ring", "queries around the ring, results straight back, contiguous tokens"),
    method<zigzag>("token_ring_zigzag", "queries around the ring, results straight back, zigzag tokens"),
};

}  // namespace
}  // namespace baton
