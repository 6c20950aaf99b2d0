// SPDX-License-Identifier: Apache-2.0
// Ranks as a grid: Ulysses along one side, and along the other a ring (USP) or an all-gather of
// keys and values (ulysses_all_gather).
//
//   U = the least divisor of P whose square is at least P;  R = P / U
//   q, k, v of heads / U = all-to-all of each among the U ranks of a group   (heads for tokens)
//   the passes of softmax_ring.hpp or softmax_gather.hpp among the R ranks that have the same heads
//   o = all-to-all of the heads' outputs                                     (and back)
//   backward: the same around the other backward pass, from q, k, v, out and lse that were kept
//
// Groups are of neighbouring ranks, so that the all-to-all stays on a node and the other exchange
// goes across nodes; `across` makes neighbours of the ranks that have the same heads, and groups of
// ranks that are R apart. A group's tokens lie in the sequence as one rank's of R do, contiguous or
// zigzag, cut for its ranks in order.
// Cost: (U-1)/U of each tensor, and R-1 blocks of tokens * max(kv_heads, U) * (d_k + d_v) elements,
// or tokens * U * d_k of latent keys; backward also their gradients in f32, R blocks around a ring
// and R-1 in the reduce-scatter.
// Work hides a ring, and a gather only if a rank's heads are cut into groups.
// Source: arXiv 2405.07719 (USP); feifeibear/long-context-attention, hybrid/attn_layer.py; for the
// all-gather vllm-project/vllm-omni, issue 7589 and pull request 7641, which have a forward pass
// without a mask: the mask and the backward pass are our own.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sp_methods/passes/heads.hpp"
#include "sp_methods/passes/softmax_gather.hpp"
#include "sp_methods/passes/softmax_ring.hpp"

namespace baton {
namespace {

/// Both sides of the grid. A rank has a place in its group; groups are in the order of tokens.
struct Grid {
  int group_size, groups;
  bool is_across;

  Grid(int ranks, bool is_across) : group_size(1), is_across(is_across) {
    while (group_size * group_size < ranks || ranks % group_size != 0) ++group_size;
    groups = ranks / group_size;
  }

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
  /// The ranks of all groups that have the place `place`, and so the same heads.
  std::vector<int> ranks_at(int place) const {
    std::vector<int> ranks(groups);
    for (int group = 0; group < groups; ++group) ranks[group] = rank_at(place, group);
    return ranks;
  }

  /// The layer as a rank computes it: some heads of its group's tokens.
  Layer whole(Layer layer) const {
    layer.share = HeadExchange::gathered_share(layer.share, group_size, group_size * layer.share.tokens);
    return layer;
  }
};

/// The passes of a method over the tokens of all groups, for the heads of this rank.
template <class Passes>
class AmongGroups : public GatheredAttention {
 public:
  /// Makes the passes among `ranks`, which have the same heads.
  AmongGroups(Schedule& s, const Layer& layer, std::vector<int> ranks, Layout layout)
      : s_(s), layer_(layer), ranks_(std::move(ranks)), layout_(layout) {}

  void forward(const LayerTensors& x) override {
    const Among among(s_, ranks_);
    start(x);
    passes_->forward();
  }

  void backward(const LayerTensors& x) override {
    const Among among(s_, ranks_);
    if (!passes_) start(x);
    passes_->backward();
  }

 private:
  void start(const LayerTensors& x) { passes_.emplace(s_, layer_, x, layout_); }

  Schedule& s_;
  const Layer& layer_;
  std::vector<int> ranks_;
  Layout layout_;
  std::optional<Passes> passes_;  // the backward pass reads what the forward pass has left
};

/// Positions of `count` of the tokens at `all`, from local token `from` on.
Positions part_of(const Positions& all, std::int64_t from, std::int64_t count) {
  Positions part = all;
  part.split = std::clamp<std::int64_t>(all.split - from, 0, count);
  part.first = all.at(from);
  if (part.split == 0) part.split = count;
  return part;
}

/// The properties in which combined methods differ.
struct Product {
  std::string name, summary;
  bool is_across = false;
  Layout layout = contiguous;  // of the groups' tokens
  /// The cost of the passes among the groups.
  Cost (*cost)(const Layer&, int groups, Layout) = nullptr;
  /// The reason why the passes among the groups cannot run a layer in this layout; empty if they
  /// can.
  Refusal (*unsupported)(const Layer&, Layout) = nullptr;

  /// Claimed cost: that of the passes among the groups and of the exchanges of heads. The exchanges
  /// are a hop before the passes and one after them, or one for each tensor.
  Cost claim(const Layer& layer, const Grid& grid) const {
    if (grid.group_size == 1) return {};
    const int passes = layer.pass == Pass::both ? 2 : 1;
    const Cost among = cost(grid.whole(layer), grid.groups, layout);
    return {among.sent_bytes + head_exchange_bytes(layer, grid.group_size),
            hops_if_seen(layer, among.hops + passes * head_exchange_hops(layer))};
  }

  Refusal refusal(const Layer& layer, const Grid& grid) const {
    Layer whole = grid.whole(layer);
    whole.groups = 1;
    if (Refusal reason = unsupported(whole, layout)) return reason;
    if (Refusal reason = unsupported_heads(layer, grid.group_size)) return reason;
    return unsupported(grid.whole(layer), layout);
  }

  /// The positions of the tokens of a rank's group.
  Positions group_positions(const Grid& grid, int rank, std::int64_t tokens) const {
    return Cut{layout, grid.groups, grid.group_size * tokens}.positions(grid.group(rank));
  }
};

/// The positions of the tokens of ranks; null if neighbours share contiguous tokens, which lie as
/// those of single ranks.
std::function<Positions(int, int, std::int64_t)> positions_of_ranks(const Product& product) {
  if (product.layout == contiguous && !product.is_across) return nullptr;
  return [product](int rank, int ranks, std::int64_t tokens) {
    const Grid grid(ranks, product.is_across);
    return part_of(product.group_positions(grid, rank, tokens), grid.place(rank) * tokens, tokens);
  };
}

/// Registers Ulysses around `Passes`, whose constructor takes a schedule, a layer, its tensors and
/// their layout, and which has the member functions that run_passes calls.
template <class Passes>
RegisteredMethod method(const Product& product) {
  return RegisteredMethod({
      .name = product.name,
      .summary = product.summary,
      .attention = Attention::softmax,
      .packs = true,
      .build =
          [product](Schedule& s, const Layer& layer, const LayerTensors& x) {
            const Grid grid(s.ranks(), product.is_across);
            HeadExchange heads(s, layer, grid.ranks_of_group(grid.group(s.rank())));
            const Layer whole = heads.whole();
            AmongGroups<Passes> among(s, whole, grid.ranks_at(grid.place(s.rank())), product.layout);
            record_passes(s, layer, heads, among, x);
          },
      .claim =
          [product](const Layer& layer, const Split& split) {
            return product.claim(layer, {split.ranks, product.is_across});
          },
      .unsupported =
          [product](const Layer& layer, int ranks) {
            return product.refusal(layer, {ranks, product.is_across});
          },
      .layout = product.layout,
      .positions = positions_of_ranks(product),
      .kept =
          [product](int rank, int ranks, const LayerShape& share, const Shares&) {
            const Grid grid(ranks, product.is_across);
            return gathered_part(share, grid.group_size, grid.place(rank),
                                 product.group_positions(grid, rank, share.tokens),
                                 grid.group_size * share.tokens);
          },
  });
}

RegisteredMethod usp(const std::string& name, const std::string& summary, bool is_across, Layout layout) {
  return method<RingSoftmax>({name, summary, is_across, layout, ring_softmax_cost, unsupported_softmax});
}

/// Cost of the passes over gathered keys and values. In a backward pass by itself the keys are
/// gathered while the gradient of the output comes.
Cost cost_of_gathering(const Layer& layer, int groups, Layout layout) {
  Cost cost = gathered_softmax_cost(layer, groups, layout);
  if (groups > 1 && layer.pass == Pass::backward && layer.mode == Mode::overlapped) --cost.hops;
  return cost;
}

RegisteredMethod ulysses_all_gather(const std::string& name, const std::string& summary, Layout layout) {
  return method<GatheredSoftmax>({name, summary, false, layout, cost_of_gathering, unsupported_gathering});
}

const RegisteredMethod registered[]{
    usp("usp", "heads for tokens among neighbours, a ring over the groups, contiguous tokens", false,
        contiguous),
    usp("usp_zigzag", "heads for tokens among neighbours, a ring over the groups, zigzag tokens", false,
        zigzag),
    usp("usp_zigzag_across", "heads for tokens across nodes, a ring of neighbours, zigzag tokens", true,
        zigzag),
    ulysses_all_gather("ulysses_all_gather",
                       "heads for tokens among neighbours, keys gathered over the groups, contiguous tokens",
                       contiguous),
    ulysses_all_gather("ulysses_all_gather_zigzag",
                       "heads for tokens among neighbours, keys gathered over the groups, zigzag tokens",
                       zigzag),
};

}  // namespace
}  // namespace baton
