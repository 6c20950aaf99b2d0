// SPDX-License-Identifier: Apache-2.0
// The passes of softmax attention over gathered keys and values.
//
//   for each head group, the gather of the next one under its attention:
//     k, v of the whole sequence = all-gather of the own ones, in the order of the sequence
//     (out, lse) = attention of the own queries over the keys up to the last that they see
//   backward, the reduce-scatter of a group under the gradients of the next one:
//     dk, dv of the whole sequence = gradients of the own queries, zero where none sees
//     own dk, dv = reduce-scatter of these
//
// A zigzag rank has a piece of the front and its mirror from the back. The fronts are gathered in
// rank order and the backs in reverse, so that all keys lie in the order of the sequence. Keys and
// values travel in the tensors' type, their gradients in f32. The backward pass reads what the
// forward pass has gathered; alone it gathers again. Gradients of two groups are kept at a time.
// Cost: P-1 blocks of key_value_elements and the hops of the all-gather, forward or before a
// backward pass alone; backward as many elements of gradients and the hops of the reduce-scatter.
// Every other group waits for the memory of gradients, and adds hops. Groups cost a copy of each
// tensor. Inside an `Among` scope its ranks take part.
// Source: arXiv 2502.07563 (LASP-2H), algorithm 7; zhuzilin/ring-flash-attention,
// llama3_flash_attn_varlen.py (head groups).
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "sp_methods/kernels/heads.hpp"
#include "sp_methods/passes/gathers.hpp"
#include "sp_methods/passes/softmax_steps.hpp"

namespace baton {

/// A layer's tensors cut into head groups, one after the other [groups, tokens, heads of a group,
/// width]. A single group is the tensor itself.
class HeadGroups {
 public:
  HeadGroups(Schedule& s, const Layer& layer) : s_(s), tokens_(layer.share.tokens), count_(layer.groups) {}

  int count() const { return count_; }
  /// Memory for the head groups of tensor x; x itself if there is one group.
  Slice memory(const Slice& x, std::string name) {
    return count_ == 1 ? x : s_.scratch(std::move(name), x.count, x.dtype);
  }
  Slice packed(const Slice& x, std::int64_t heads, std::string name) {
    const Slice groups = memory(x, std::move(name));
    if (count_ > 1 && !x.empty()) record<PackHeads>(s_, blocks(x, heads), {.blocks = groups, .tensor = x});
    return groups;
  }
  void unpack(const Slice& x, const Slice& groups, std::int64_t heads) {
    if (count_ > 1 && !x.empty()) record<UnpackHeads>(s_, blocks(x, heads), {.tensor = x, .blocks = groups});
  }

 private:
  HeadBlocks blocks(const Slice& x, std::int64_t heads) const {
    return {tokens_, count_, heads, x.count / tokens_ / heads, x.dtype};
  }

  Schedule& s_;
  std::int64_t tokens_;
  int count_;
};

/// Attention of a rank's queries over the keys of all ranks.
class GatheredSoftmax {
 public:
  GatheredSoftmax(Schedule& s, const Layer& layer, const LayerTensors& x, Layout layout,
                  const GatherNames& names = ring_gathers)
      : s_(s),
        layer_(layer),
        x_(x),
        names_(names),
        cut_(cut_of(layer, layout, s.ranks())),
        rank_(s.rank()),
        groups_(s, layer),
        steps_(s, layer, layout),
        shape_(steps_.shape({s.rank(), s.rank()})),
        result_(steps_.result(x.o)) {
    const int count = groups_.count();
    shape_.heads /= count;
    shape_.kv_heads /= count;
    shape_.k_tokens = cut_.sequence();
    shape_.k_positions = Positions::run(0, shape_.k_tokens);
    const std::int64_t queries = shape_.q_tokens;
    shape_.k_tokens = shape_.k_positions.split = queries == 0 ? 0 : shape_.visible(queries - 1);
    q_ = groups_.packed(x.q, heads(), "q_groups");
    own_ = {groups_.packed(x.k, key_heads(), "k_groups"), groups_.packed(x.v, key_heads(), "v_groups"), {}};
    const std::int64_t rows = cut_.sequence() * key_heads();
    keys_ = {memory_of_all(s, "keys", own_.k, s.ranks(), rows * layer.share.d_k),
             memory_of_all(s, "values", own_.v, s.ranks(), rows * layer.share.value_width()),
             {}};
  }

  void forward() {
    const PartialOutput groups{groups_.memory(result_.out, "out_groups"),
                               groups_.memory(result_.lse, "lse_groups")};
    const int count = groups_.count();
    for_groups(true, [&](int g) {
      if (x_.q.empty()) return;
      const RingBlock keys = visible_of(keys_, g, groups_.count());
      record<SoftmaxBlock>(s_, shape_,
                           {.in = {q_.block(g, count), keys.k, keys.v},
                            .out = groups.out.block(g, count),
                            .lse = groups.lse.block(g, count)});
    });
    groups_.unpack(result_.out, groups.out, heads());
    groups_.unpack(result_.lse, groups.lse, heads());
    set(s_, x_.o, result_.out);
  }

  void backward() {
    const int count = groups_.count();
    const Slice delta = s_.scratch("delta", steps_.rows());
    steps_.set_delta(delta, x_.d_o, result_.out);
    const QuerySide queries{q_, groups_.packed(x_.d_o, heads(), "d_o_groups"),
                            groups_.packed(result_.lse, heads(), "lse_groups"),
                            groups_.packed(delta, heads(), "delta_groups")};
    dq_ = sums_of(s_, x_.dq, "dq_sums");
    into_ = {sums_of(s_, x_.dk, "dk_own"), sums_of(s_, x_.dv, "dv_own"), {}};
    const Slice dq = groups_.memory(dq_, "dq_groups");
    const RingBlock into{groups_.memory(into_.k, "dk_groups"), groups_.memory(into_.v, "dv_groups"), {}};
    const int slots = std::min(count, 2);
    const RingBlock sums{
        s_.scratch("dk_sums", slots * cut_.sequence() * key_heads() / count * layer_.share.d_k),
        s_.scratch("dv_sums", slots * cut_.sequence() * key_heads() / count * layer_.share.value_width()),
        {}};
    fill(s_, dq, 0.0F);
    for_groups(layer_.pass == Pass::backward, [&](int g) {
      const Slice dk = sums.k.block(g % slots, slots), dv = sums.v.block(g % slots, slots);
      fill(s_, dk, 0.0F);
      fill(s_, dv, 0.0F);
      if (!x_.q.empty()) add_gradients(g, queries, dq, visible_of(sums, g, slots));
      wait_if_exposed(s_, layer_);
      scatter_pieces(into.k.block(g, count), dk);
      scatter_pieces(into.v.block(g, count), dv);
    });
    groups_.unpack(dq_, dq, heads());
    groups_.unpack(into_.k, into.k, key_heads());
    groups_.unpack(into_.v, into.v, key_heads());
    set_gradients(s_, x_, {dq_, into_});
  }

 private:
  std::int64_t heads() const { return layer_.share.heads; }
  std::int64_t key_heads() const { return layer_.share.key_heads(); }

  /// The part of group g that this rank's queries see. `all` has tensors of the whole sequence, a
  /// group in each of `slots` slots.
  RingBlock visible_of(const RingBlock& all, int g, int slots) const {
    const Slice k = all.k.block(g % slots, slots), v = all.v.block(g % slots, slots);
    const std::int64_t tokens = cut_.sequence();
    return {k.part(0, k.count / tokens * shape_.k_tokens), v.part(0, v.count / tokens * shape_.k_tokens), {}};
  }

  /// Calls work(g) for each head group. With `gathers` it gathers the group's keys before: under
  /// the work of the group before, or in mode exposed one after the other.
  template <class Work>
  void for_groups(bool gathers, const Work& work) {
    const int count = groups_.count();
    const bool is_ahead = layer_.mode == Mode::overlapped;
    for (int g = 0; g < count; ++g) {
      if (gathers && (g == 0 || !is_ahead)) gather_keys(g);
      if (gathers && is_ahead && g + 1 < count) gather_keys(g + 1);
      wait_if_exposed(s_, layer_);
      work(g);
      wait_if_exposed(s_, layer_);
    }
  }

  void gather_keys(int g) {
    const int count = groups_.count();
    const Slice k = own_.k.block(g, count), v = own_.v.block(g, count);
    const Slice keys = keys_.k.block(g, count), values = keys_.v.block(g, count);
    for_pieces([&](int i) {
      for (const auto& [all, own] : {std::pair{keys, k}, std::pair{values, v}})
        gather(s_, names_, piece_of_all(all, i), piece_of_own(own, all, i), counts(all, i));
    });
  }

  void add_gradients(int g, const QuerySide& queries, const Slice& dq, const RingBlock& into) {
    const int count = groups_.count();
    const RingBlock keys = visible_of(keys_, g, groups_.count());
    record<SoftmaxBlockGradients>(s_, {shape_},
                                  {.in = {queries.q.block(g, count), keys.k, keys.v},
                                   .d_o = queries.d_o.block(g, count),
                                   .lse = queries.lse.block(g, count),
                                   .delta = queries.delta.block(g, count),
                                   .dq = dq.block(g, count),
                                   .dk = into.k,
                                   .dv = into.v});
  }

  /// Sets `own` to the gradients of this rank's tokens, summed over the `all` of all ranks.
  void scatter_pieces(const Slice& own, const Slice& all) {
    for_pieces(
        [&](int i) { scatter(s_, names_, piece_of_own(own, all, i), piece_of_all(all, i), counts(all, i)); });
  }

  /// The front or the back of the sequence in a tensor `all` of it.
  Slice piece_of_all(const Slice& all, int i) const {
    const std::int64_t fronts = cut_.fronts() * row_of(all);
    return i == 0 ? all.part(0, fronts) : all.part(fronts, all.count - fronts);
  }
  /// The piece of this rank in its own tensor.
  Slice piece_of_own(const Slice& own, const Slice& all, int i) const {
    const std::int64_t first = i == 0 ? 0 : cut_.piece(rank_, 0);
    return own.part(first * row_of(all), cut_.piece(rank_, i) * row_of(all));
  }
  /// Number of elements of the piece of each rank in `all`, in the order of the sequence; empty if
  /// they are equal.
  std::vector<std::int64_t> counts(const Slice& all, int i) const {
    std::vector<std::int64_t> each;
    for (int place = 0; place < s_.ranks() && !cut_.edges.empty(); ++place)
      each.push_back(cut_.piece(i == 0 ? place : s_.ranks() - 1 - place, i) * row_of(all));
    return each;
  }
  std::int64_t row_of(const Slice& all) const { return all.count / cut_.sequence(); }

  /// Calls body(i) for each piece of the sequence that a rank holds. Ranks count from the other end
  /// while it is called for the back piece.
  template <class Body>
  void for_pieces(const Body& body) {
    body(0);
    if (cut_.pieces() == 1) return;
    const Reversed backs(s_);
    body(1);
  }

  Schedule& s_;
  const Layer& layer_;
  const LayerTensors& x_;
  const GatherNames& names_;
  Cut cut_;
  int rank_;  // of this one in the sequence, from whichever end ranks count
  HeadGroups groups_;
  SoftmaxSteps steps_;
  SoftmaxShape shape_;  // the own queries of a group and the keys up to the last that they see
  PartialOutput result_;
  Slice q_;         // all groups
  RingBlock own_;   // all groups
  RingBlock keys_;  // keys and values of the whole sequence, all groups
  Slice dq_;        // f32 sums
  RingBlock into_;  // f32 sums
};

/// Bytes of the rank that sends most in a pass. Around a ring, a rank passes on all pieces but the
/// one that the next rank has; else it sends its own to all others. Of gradients it sends all but
/// its own.
inline std::int64_t busiest_gathering(const Layer& layer, const Cut& cut, const GatherNames& names) {
  const std::int64_t ranks = cut.ranks, row = key_value_row(layer.share);
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t passed_on = cut.sequence() - cut.piece((rank + 1) % ranks, 0);
    if (cut.pieces() > 1) passed_on -= cut.piece((rank + ranks - 1) % ranks, 1);
    const std::int64_t rows = names.is_ring ? passed_on : (ranks - 1) * cut.share(rank);
    const std::int64_t gradients = layer.pass == Pass::forward ? 0 : cut.sequence() - cut.share(rank);
    most = std::max(most, row * (rows * bytes_of(layer.dtype) + gradients * bytes_of(Dtype::f32)));
  }
  return most;
}

/// Cost of softmax attention over gathered keys and values for each of `ranks` ranks.
inline Cost gathered_softmax_cost(const Layer& layer, int ranks, Layout layout,
                                  const GatherNames& names = ring_gathers) {
  const int gathers = names.gather_hops(ranks), scatters = names.scatter_hops(ranks);
  const bool in_turn = layer.mode == Mode::exposed;
  const Cut cut = cut_of(layer, layout, ranks);
  Cost cost{busiest_gathering(layer, cut, names), (in_turn ? layer.groups : 1) * gathers};
  if (layer.pass == Pass::forward) return cost;
  cost.hops += (in_turn ? layer.groups : (layer.groups + 1) / 2) * scatters;
  if (cut.has_empty_piece()) cost.hops = -1;  // its rank waits for no keys
  return cost;
}

/// The reason why no method that gathers keys and values in this layout can run this layer; empty
/// if one can.
inline Refusal unsupported_gathering(const Layer& layer, Layout layout) {
  Layer whole = layer;
  whole.groups = 1;
  if (Refusal reason = unsupported_softmax(whole, layout)) return reason;
  if (layer.share.key_heads() % layer.groups == 0) return {};
  return std::to_string(layer.share.key_heads()) + " heads of keys cannot be cut into " +
         std::to_string(layer.groups) + " groups";
}

}  // namespace baton
