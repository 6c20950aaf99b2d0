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
#include <string_view>
#include <utility>
#include <vector>

#include "sp_methods/kernels/heads.hpp"
#include "sp_methods/passes/ring.hpp"

namespace baton {

/// Exchanges of one layer's tensors among the ranks of a group.
class HeadExchange {
 public:
  using Source = std::source_location;

  /// Makes the exchanges of `layer`. `group` has the ranks in the order of their tokens.
  HeadExchange(Schedule& schedule, const Layer& layer, std::vector<int> group)
      : schedule_(schedule),
        layer_(layer),
        group_(std::move(group)),
        ranks_(static_cast<int>(group_.size())) {}

  /// The layer as this rank computes it: its heads of all tokens.
  Layer whole() const {
    Layer whole = layer_;
    whole.share = gathered_share(layer_.share, ranks_);
    whole.cut_documents(0);
    return whole;
  }

  /// Scratch for tensor x of `heads` heads once it is gathered; x itself on one rank.
  Slice scratch(const Slice& x, std::int64_t heads, const std::string& name) {
    return ranks_ == 1 ? x : schedule_.scratch(name, blocks(x, heads).elements(), x.dtype);
  }
  /// Memory for the gathered tensor x of `heads` heads, kept for the backward pass; x itself on one
  /// rank.
  Slice kept(const Slice& x, std::int64_t heads, std::string_view name) {
    if (ranks_ == 1) return x;
    return saved_for_backward(schedule_, layer_, std::string(kept_prefix).append(name),
                              blocks(x, heads).elements(), x.dtype);
  }

  /// Sets `into` to the gathered tensor x: all tokens of this rank's heads.
  void gather(const Slice& into, const Slice& x, std::int64_t heads, Source source = Source::current()) {
    if (ranks_ == 1 || x.empty()) return;
    const Slice packed = schedule_.scratch("packed", into.count, x.dtype);
    record<PackHeads>(schedule_, blocks(x, heads), {.blocks = packed, .tensor = x}, source);
    exchange(into, packed);
  }

  /// Sets x to this rank's tokens of all heads. `from` has all tokens of this rank's heads.
  void scatter(const Slice& x, const Slice& from, std::int64_t heads, Source source = Source::current()) {
    if (ranks_ == 1 || x.empty()) return;
    const Slice packed = schedule_.scratch("packed", from.count, x.dtype);
    exchange(packed, from);
    record<UnpackHeads>(schedule_, blocks(x, heads), {.tensor = x, .blocks = packed}, source);
  }

  static LayerShape gathered_share(LayerShape share, int ranks) {
    const std::int64_t key_heads = share.key_heads() / share.batch;
    share.tokens *= ranks;
    share.heads /= ranks;
    share.qk_heads /= ranks;
    share.kv_heads = share.batch * std::max<std::int64_t>(1, key_heads / ranks);
    return share;
  }

 private:
  HeadBlocks blocks(const Slice& x, std::int64_t heads) const {
    const std::int64_t tokens = layer_.share.tokens, batch = layer_.share.batch;
    return {tokens * batch, ranks_, heads / batch, x.count / tokens / heads, x.dtype};
  }

  void exchange(const Slice& into, const Slice& own) {
    const Among among(schedule_, group_);
    embed(schedule_, "direct_all_to_all", {{{}, own, 1}, into, 1});
    wait_if_exposed(schedule_, layer_);
  }

  Schedule& schedule_;
  const Layer& layer_;
  std::vector<int> group_;
  int ranks_;
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

/// Bytes that a rank of `ranks` sends in the exchanges of one pass: the inputs and the output, or
/// their gradients.
inline std::int64_t head_exchange_bytes(const Layer& layer, int ranks) {
  const LayerShape& share = layer.share;
  const auto sent = [&](std::int64_t heads, std::int64_t width) {
    const HeadBlocks blocks{share.tokens * share.batch, ranks, heads / share.batch, width};
    return (ranks - 1) * blocks.elements() / ranks;
  };
  std::int64_t elements = 0;
  for (const TensorKind& kind : tensor_kinds())
    if (kind.is_in(layer.rule, Pass::forward) && !kind.is_weight())
      elements += sent(kind.heads(share), kind.width(share));
  return elements * bytes_of(layer.dtype);
}

/// Hops of the exchanges of one pass: one for what comes in and one for what goes out, or in mode
/// exposed one for each tensor.
inline int head_exchange_hops(const Layer& layer) {
  if (layer.mode != Mode::exposed) return 2;
  return static_cast<int>(
      std::count_if(tensor_kinds().begin(), tensor_kinds().end(), [&](const TensorKind& kind) {
        return kind.is_in(layer.rule, Pass::forward) && !kind.is_weight() && kind.width(layer.share) > 0;
      }));
}

/// Records the passes of `attention` between the exchanges of the tensors x.
inline void record_passes(Schedule& s, const Layer& layer, HeadExchange& heads, GatheredAttention& attention,
                          const LayerTensors& x) {
  using Role = TensorKind::Role;
  const std::int64_t all = layer.share.heads;
  const Pass pass = layer.pass;
  LayerTensors whole{.conv_w = x.conv_w, .dconv_w = x.dconv_w};
  const auto for_each = [&](Role role, const auto& visit) {
    for (const TensorKind& kind : tensor_kinds())
      if (kind.role == role) visit(whole.*kind.slice, x.*kind.slice, kind.heads(layer.share), kind.name);
  };
  for_each(Role::input, [&](Slice& gathered, const Slice& own, std::int64_t count, std::string_view name) {
    gathered = heads.kept(own, count, name);
    if (pass != Pass::backward) heads.gather(gathered, own, count);
  });
  if (pass != Pass::backward) {
    whole.o = heads.scratch(x.o, all, "gathered_o");
    attention.forward(whole);
    heads.scatter(x.o, whole.o, all);
  }
  if (pass == Pass::both) s.fence();  // the gradient of the output needs the output
  if (pass == Pass::forward) return;
  whole.d_o = heads.scratch(x.d_o, all, "gathered_d_o");
  heads.gather(whole.d_o, x.d_o, all);
  for_each(Role::gradient, [&](Slice& gathered, const Slice& own, std::int64_t count, std::string_view) {
    gathered = heads.scratch(own, count, "gathered_gradient");
  });
  attention.backward(whole);
  for_each(Role::gradient, [&](const Slice& gathered, const Slice& own, std::int64_t count,
                               std::string_view) { heads.scatter(own, gathered, count); });
}

/// The part of the gathered tensors that the rank at `place` of a group of `ranks` has. `positions`
/// are those of the group's tokens.
inline TensorPart gathered_part(const LayerShape& share, int ranks, int place, const Positions& positions) {
  const LayerShape whole = HeadExchange::gathered_share(share, ranks);
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
