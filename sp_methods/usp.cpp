// SPDX-License-Identifier: Apache-2.0
// USP: ranks as a grid, Ulysses along one side and Ring Attention along the other.
//
//   U = the least divisor of P whose square is at least P;  R = P / U
//   q, k, v of heads / U = all-to-all of each among the U ranks of a group   (heads for tokens)
//   Ring Attention among the R ranks that have the same heads
//   o = all-to-all of the heads' outputs                                     (and back)
//   backward: the same around the ring's backward pass, from q, k, v, out and lse that were kept
//
// Groups are of neighbouring ranks, so that the all-to-all stays on a node and the ring goes across
// nodes; `across` makes rings of neighbours, and groups of ranks that are R apart. A group's tokens
// lie in the sequence as one rank's of R do, contiguous or zigzag, cut for its ranks in order.
// Cost: (U-1)/U of each tensor, and R-1 hops of U * tokens * kv_heads / U * (d_k + d_v) elements;
// backward also R hops of their gradients in f32.
// Source: arXiv 2405.07719 (USP); feifeibear/long-context-attention, hybrid/attn_layer.py.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sp_methods/heads.hpp"
#include "sp_methods/softmax_ring.hpp"

namespace baton {
namespace {

/// A rank's place in the grid: in its group, and which group it is, in the order of tokens.
struct Grid {
  int group_size, groups;
  bool is_across;

  int place(int rank) const { return is_across ? rank / groups : rank % group_size; }
  int group(int rank) const { return is_across ? rank % groups : rank / group_size; }
  int rank_at(int place, int group) const {
    return is_across ? place * groups + group : group * group_size + place;
  }

  std::vector<int> ranks_of_group(int group) const {
    std::vector<int> ranks(group_size);
    for (int place = 0; place < group_size; ++place) ranks[place] = rank_at(place, group);
    return ranks;
  }
  std::vector<int> ranks_of_ring(int place) const {
    std::vector<int> ranks(groups);
    for (int group = 0; group < groups; ++group) ranks[group] = rank_at(place, group);
    return ranks;
  }
};

/// Both sides of a grid of P ranks.
Grid grid_of(int P, bool is_across) {
  int U = 1;
  while (U * U < P || P % U != 0) ++U;
  return {U, P / U, is_across};
}

/// Ring Attention over the tokens of all groups, for the heads of this rank.
class GatheredRing : public GatheredAttention {
 public:
  GatheredRing(Schedule& s, const Layer& layer, std::vector<int> ring, Layout layout)
      : s_(s), layer_(layer), ring_(std::move(ring)), steps_(s, layer, layout) {}

  void forward(const LayerTensors& x) override {
    const Among among(s_, ring_);
    start(x);
    ring_forward(s_, layer_, x, steps_, *keys_, result_);
  }

  void backward(const LayerTensors& x) override {
    const Among among(s_, ring_);
    if (!keys_) start(x);
    RingGradients(s_, layer_, x, steps_).backward(*keys_, result_);
  }

 private:
  void start(const LayerTensors& x) {
    keys_.emplace(s_, layer_, x);
    result_ = steps_.result(x.o);
  }

  Schedule& s_;
  const Layer& layer_;
  std::vector<int> ring_;
  SoftmaxSteps steps_;
  std::optional<KeyRing> keys_;  // of both passes
  PartialOutput result_;
};

/// The grid, and the layout of the groups' tokens.
struct Text {
  bool is_across;
  Layout layout;
};

void usp(Schedule& s, const Layer& layer, const LayerTensors& x, const Text& text) {
  const Grid grid = grid_of(s.ranks(), text.is_across);
  HeadExchange heads(s, layer, grid.ranks_of_group(grid.group(s.rank())));
  const Layer whole = heads.whole();
  GatheredRing ring(s, whole, grid.ranks_of_ring(grid.place(s.rank())), text.layout);
  record_passes(s, layer, heads, ring, x);
}

/// `count` of these tokens, from local token `from` on.
Positions part_of(const Positions& all, std::int64_t from, std::int64_t count) {
  Positions part = all;
  part.split = std::clamp<std::int64_t>(all.split - from, 0, count);
  part.first = all.at(from);
  if (part.split == 0) part.split = count;
  return part;
}

/// The exchanges of heads are a hop before the ring and one after it, or one for each tensor.
std::optional<Cost> claim(const Layer& layer, const Split& split) {
  const auto [U, R, is_across] = grid_of(split.ranks, false);
  Cost cost;
  if (split.ranks == 1) return cost;
  const bool is_exposed = layer.mode == Mode::exposed;
  const std::int64_t elements = key_value_elements(HeadExchange::gathered_share(layer.share, U));
  const std::int64_t once = head_exchange_bytes(layer, U) + (R - 1) * elements * bytes_of(layer.dtype);
  const int exchanges = is_exposed ? 4 : 2;
  if (layer.pass != Pass::backward) cost = {once, exchanges + R - 1};
  if (layer.pass == Pass::forward) return cost;
  cost.sent_bytes += once;
  cost.hops += exchanges;
  if (R == 1) return cost;
  cost.sent_bytes += R * elements * bytes_of(Dtype::f32);
  cost.hops += is_exposed ? R + 1 : R;
  return cost;
}

RegisteredMethod method(const std::string& name, const std::string& summary, const Text& text) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .build = [text](Schedule& s, const Layer& layer, const LayerTensors& x) { usp(s, layer, x, text); },
      .claim = claim,
      .unsupported = [text](const Layer& layer, int ranks) -> Refusal {
        const int U = grid_of(ranks, text.is_across).group_size;
        Layer whole = layer;
        whole.share = HeadExchange::gathered_share(layer.share, U);
        if (Refusal reason = unsupported_softmax(whole, text.layout)) return reason;
        return unsupported_heads(layer, U);
      },
      .positions =
          [text](int rank, int ranks, std::int64_t tokens) {
            const Grid grid = grid_of(ranks, text.is_across);
            return part_of(text.layout(grid.group(rank), grid.groups, grid.group_size * tokens),
                           grid.place(rank) * tokens, tokens);
          },
      .kept =
          [text](int rank, int ranks, const GlaShape& share) {
            const Grid grid = grid_of(ranks, text.is_across);
            const GlaShape whole = HeadExchange::gathered_share(share, grid.group_size);
            return gathered_part(share, grid.group_size, grid.place(rank),
                                 text.layout(grid.group(rank), grid.groups, whole.tokens));
          },
  });
}

const RegisteredMethod registered[]{
    method("usp", "heads for tokens among neighbours, a ring over the groups, contiguous tokens",
           {false, contiguous}),
    method("usp_zigzag", "heads for tokens among neighbours, a ring over the groups, zigzag tokens",
           {false, zigzag}),
    method("usp_zigzag_across", "heads for tokens across nodes, a ring of neighbours, zigzag tokens",
           {true, zigzag}),
};

}  // namespace
}  // namespace baton
