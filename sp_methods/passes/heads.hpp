// SPDX-License-Identifier: Apache-2.0
// Heads for tokens: ranks that hold all heads of their tokens exchange them for their heads of all
// tokens, and back.
//
//   gather:   x [tokens, heads, width] -> pack -> all-to-all -> [ranks*tokens, heads/ranks, width]
//   scatter:  [ranks*tokens, heads/ranks, width] -> all-to-all -> unpack -> x
//
// Of a batch a rank has some heads of each sequence: to these kernels the sequences of a token are
// so many tokens.
// A tensor is an all-to-all of its own, so what arrives is the whole sequence in order and is not
// unpacked. Where there are fewer heads of keys than ranks, ranks share one, and their gradients of
// it are added up. One rank moves nothing.
// Cost: (ranks-1)/ranks of a tensor sent a rank, keys repeated for those that share them; the hops
// of the all-to-all.
// Source: DeepSpeed-Ulysses, arXiv 2309.14509; deepspeed/sequence/layer.py.
#pragma once

#include <algorithm>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "sp_methods/kernels/heads.hpp"
#include "sp_methods/passes/ring.hpp"

namespace baton {

/// The heads of `tokens` tokens of a tensor as one block for each of `ranks` ranks.
inline HeadBlocks head_blocks(const Layer& layer, const TensorKind& kind, std::int64_t tokens, int ranks) {
  const LayerShape& share = layer.share;
  return {tokens * share.batch, ranks, kind.heads(share) / share.batch, kind.width(share), layer.dtype};
}

/// True if the layer has tensors of this kind, whose heads are exchanged.
inline bool has_heads(const Layer& layer, const TensorKind& kind) {
  return (!kind.rule || *kind.rule == layer.rule) && !kind.is_weight() && kind.width(layer.share) > 0;
}

/// Exchanges of one layer's tensors among the ranks of a group.
class HeadExchange {
 public:
  using Source = std::source_location;

  /// Makes the exchanges of `layer`. `group` has the ranks in the order of their tokens.
  HeadExchange(Schedule& schedule, const Layer& layer, std::vector<int> group)
      : schedule_(schedule),
        layer_(layer),
        group_(std::move(group)),
        ranks_(static_cast<int>(group_.size())),
        cut_(cut_of(layer, Layout::contiguous, ranks_)) {}

  /// The layer as this rank computes it: its heads of all tokens.
  Layer whole() const {
    Layer whole = layer_;
    whole.share = gathered_share(layer_.share, ranks_, cut_.sequence());
    whole.shares = {};
    whole.cut_documents(0);
    return whole;
  }

  /// Scratch for tensor x of a kind once it is gathered; x itself on one rank.
  Slice scratch(const Slice& x, const TensorKind& kind, const std::string& name) {
    return ranks_ == 1 ? x : schedule_.scratch(name, gathered(kind), x.dtype);
  }
  /// Memory for the gathered tensor x of a kind, kept for the backward pass; x itself on one rank.
  Slice kept(const Slice& x, const TensorKind& kind) {
    if (ranks_ == 1) return x;
    return saved_for_backward(schedule_, layer_, std::string(kept_prefix).append(kind.name), gathered(kind),
                              x.dtype);
  }

  /// Sets `into` to the gathered tensor x: all tokens of this rank's heads.
  void gather(const Slice& into, const Slice& x, const TensorKind& kind, Source source = Source::current()) {
    if (ranks_ == 1 || into.empty()) return;
    const HeadBlocks own = blocks(kind, layer_.share.tokens);
    const Slice packed = schedule_.scratch("packed", own.elements(), x.dtype);
    if (!x.empty()) record<PackHeads>(schedule_, own, {.blocks = packed, .tensor = x}, source);
    exchange({.own = {{}, packed, 1}, .into = into, .into_counts = counts(kind)});
  }

  /// Sets x to this rank's tokens of all heads. `from` has all tokens of this rank's heads.
  void scatter(const Slice& x, const Slice& from, const TensorKind& kind, Source source = Source::current()) {
    if (ranks_ == 1 || from.empty()) return;
    const HeadBlocks own = blocks(kind, layer_.share.tokens);
    const Slice packed = schedule_.scratch("packed", own.elements(), x.dtype);
    exchange({.own = {{}, from, 1}, .into = packed, .own_counts = counts(kind)});
    if (!x.empty()) record<UnpackHeads>(schedule_, own, {.tensor = x, .blocks = packed}, source);
  }

  /// The share of a rank that has its heads of all `tokens` of a group.
  static LayerShape gathered_share(LayerShape share, int ranks, std::int64_t tokens) {
    const std::int64_t key_heads = share.key_heads() / share.batch;
    share.tokens = tokens;
    share.heads /= ranks;
    share.qk_heads /= ranks;
    share.kv_heads = share.batch * std::max<std::int64_t>(1, key_heads / ranks);
    return share;
  }

 private:
  HeadBlocks blocks(const TensorKind& kind, std::int64_t tokens) const {
    return head_blocks(layer_, kind, tokens, ranks_);
  }
  /// Number of elements of a gathered tensor.
  std::int64_t gathered(const TensorKind& kind) const {
    return blocks(kind, cut_.sequence()).elements() / ranks_;
  }
  /// Number of elements of each rank's tokens in a gathered tensor; empty if they are equal.
  std::vector<std::int64_t> counts(const TensorKind& kind) const {
    std::vector<std::int64_t> each;
    for (int rank = 0; rank < ranks_ && !layer_.shares.are_equal(); ++rank)
      each.push_back(blocks(kind, cut_.share(rank)).elements() / ranks_);
    return each;
  }

  void exchange(const Operands& operands) {
    const Among among(schedule_, group_);
    embed(schedule_, "direct_all_to_all", operands);
    wait_if_exposed(schedule_, layer_);
  }

  Schedule& schedule_;
  const Layer& layer_;
  std::vector<int> group_;
  int ranks_;
  Cut cut_;  // of the group's tokens
};

/// The attention of a rank's heads over the tokens of its group.
class GatheredAttention {
 public:
  virtual ~GatheredAttention() = default;
  /// Records a forward pass over gathered tensors.
  virtual void forward(const LayerTensors& x) = 0;
  /// Records a backward pass over gathered tensors.
  virtual void backward(const LayerTensors& x) = 0;
};

/// Bytes that the busiest of `ranks` ranks sends in the exchanges of a layer's passes. What it
/// gathers it sends for its own tokens, and what it gives back for all others.
inline std::int64_t head_exchange_bytes(const Layer& layer, int ranks) {
  const Cut cut = cut_of(layer, Layout::contiguous, ranks);
  const bool forward = layer.pass != Pass::backward, backward = layer.pass != Pass::forward;
  std::int64_t inputs = 0, outputs = 0;  // elements of a token in one block
  for (const TensorKind& kind : tensor_kinds())
    if (kind.is_in(layer.rule, Pass::forward) && has_heads(layer, kind))
      (kind.role == TensorKind::Role::input ? inputs : outputs) +=
          head_blocks(layer, kind, 1, ranks).elements() / ranks;
  std::int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t gathered = (ranks - 1) * cut.share(rank),
                       given_back = cut.sequence() - cut.share(rank);
    most = std::max(most, (forward ? gathered * inputs + given_back * outputs : 0) +
                              (backward ? gathered * outputs + given_back * inputs : 0));
  }
  return most * bytes_of(layer.dtype);
}

/// Hops of the exchanges of one pass: one for what comes in and one for what goes out, or in mode
/// exposed one for each tensor.
inline int head_exchange_hops(const Layer& layer) {
  if (layer.mode != Mode::exposed) return 2;
  return static_cast<int>(
      std::count_if(tensor_kinds().begin(), tensor_kinds().end(), [&](const TensorKind& kind) {
        return kind.is_in(layer.rule, Pass::forward) && has_heads(layer, kind);
      }));
}

/// Records the passes of `attention` between the exchanges of the tensors x.
inline void record_passes(Schedule& s, const Layer& layer, HeadExchange& heads, GatheredAttention& attention,
                          const LayerTensors& x) {
  using Role = TensorKind::Role;
  const Pass pass = layer.pass;
  const TensorKind &o = *find_tensor("o"), &d_o = *find_tensor("d_o");
  LayerTensors whole{.conv_w = x.conv_w, .dconv_w = x.dconv_w};
  const auto for_each = [&](Role role, const auto& visit) {
    for (const TensorKind& kind : tensor_kinds())
      if (kind.role == role && has_heads(layer, kind))
        visit(whole.*kind.slice, x.*kind.slice, kind);
      else if (kind.role == role)
        whole.*kind.slice = x.*kind.slice;  // which is empty
  };
  for_each(Role::input, [&](Slice& gathered, const Slice& own, const TensorKind& kind) {
    gathered = heads.kept(own, kind);
    if (pass != Pass::backward) heads.gather(gathered, own, kind);
  });
  if (pass != Pass::backward) {
    whole.o = heads.scratch(x.o, o, "gathered_o");
    attention.forward(whole);
    heads.scatter(x.o, whole.o, o);
  }
  if (pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (pass == Pass::forward) return;
  whole.d_o = heads.scratch(x.d_o, d_o, "gathered_d_o");
  heads.gather(whole.d_o, x.d_o, d_o);
  for_each(Role::gradient, [&](Slice& gathered, const Slice& own, const TensorKind& kind) {
    gathered = heads.scratch(own, kind, "gathered_gradient");
  });
  attention.backward(whole);
  for_each(Role::gradient, [&](const Slice& gathered, const Slice& own, const TensorKind& kind) {
    heads.scatter(own, gathered, kind);
  });
}

/// The part of the gathered tensors that the rank at `place` of a group of `ranks` has. `positions`
/// are those of the group's `tokens` tokens.
inline TensorPart gathered_part(const LayerShape& share, int ranks, int place, const Positions& positions,
                                std::int64_t tokens) {
  const LayerShape whole = HeadExchange::gathered_share(share, ranks, tokens);
  const std::int64_t heads = whole.heads / whole.batch;
  return {positions, whole.tokens, place * heads, heads};
}

/// The reason why `ranks` ranks cannot share the heads of this layer; empty if they can.
inline Refusal unsupported_heads(const Layer& layer, int ranks) {
  const std::int64_t heads = layer.share.heads / layer.share.batch;
  const std::int64_t keys = layer.share.key_heads() / layer.share.batch;
  const std::int64_t queries = layer.share.query_heads() / layer.share.batch;
  if (heads % ranks != 0)
    return std::to_string(heads) + " heads cannot be shared by " + std::to_string(ranks) + " ranks";
  if (queries % ranks != 0)
    return std::to_string(queries) + " heads of q and k cannot be shared by " + std::to_string(ranks) +
           " ranks";
  if (keys % ranks != 0 && ranks % keys != 0)
    return std::to_string(keys) + " heads of keys can neither be cut for nor repeated on " +
           std::to_string(ranks) + " ranks";
  return {};
}

}  // namespace baton
