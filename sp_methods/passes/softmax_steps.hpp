// SPDX-License-Identifier: Apache-2.0
// The steps that methods of softmax attention have in common: one rank's queries against one
// rank's keys, the merge of such partial results, and their gradients.
//
//   attend:     out, lse = attention of the queries of rank a over the keys of rank b
//   merge:      two partial results of the same queries become one
//   gradients:  from out and lse over the whole sequence, d_o and delta: dq, dk, dv of the pair
//
// Methods that work in turns send their results back one turn later:
//
//   turn t = 0 .. last + 1:  messages: operands of turn t+1, results of turn t-1
//                            work of turn t;  merge of the results that came;  wait for all of it
//
// Source: Dao, "FlashAttention-2", 2023; zhuzilin/ring-flash-attention (the merge);
// ACA-Lab-SJTU/token-ring and RulinShao/LightSeq (turns).
#pragma once

#include <source_location>

#include "sp_methods/passes/ring.hpp"

namespace baton {

using enum Layout;

/// A pair of ranks: one owns the queries, one owns the keys.
struct RankPair {
  int queries = 0;
  int keys = 0;
};

/// Output and lse of attention over some of the keys.
struct PartialOutput {
  Slice out;  ///< [tokens, heads, d_v], f32, or of `part_dtype` where it is merged at once
  Slice lse;  ///< [tokens, heads], natural logarithm
};

/// The tensors that the gradients of a rank's queries need.
struct QuerySide {
  Slice q;      ///< [tokens, heads, d_k]
  Slice d_o;    ///< [tokens, heads, d_v]
  Slice lse;    ///< [tokens, heads], over the whole sequence
  Slice delta;  ///< [tokens, heads]
};

/// Records the steps of softmax attention for one layer, whose tokens lie on the ranks in `layout`.
class SoftmaxSteps {
 public:
  using Source = std::source_location;

  SoftmaxSteps(Schedule& schedule, const Layer& layer, Layout layout)
      : schedule_(schedule),
        layer_(layer),
        cut_(cut_of(layer, layout, schedule.ranks())),
        mask_(layer.mask.within(layer.starts)) {}

  /// The sizes of the share of a rank.
  LayerShape share_of(int rank) const {
    LayerShape share = layer_.share;
    share.tokens = cut_.share(rank);
    return share;
  }

  /// Number of elements of the keys and values of a rank, and of the rank that has most.
  std::int64_t keys_and_values(int rank) const { return key_value_elements(share_of(rank)); }
  std::int64_t most_keys_and_values() const { return cut_.tokens * key_value_row(layer_.share); }

  /// Number of elements of lse of this rank's queries.
  std::int64_t rows() const { return layer_.share.tokens * layer_.share.heads; }
  /// Number of elements of out of this rank's queries.
  std::int64_t values() const { return rows() * layer_.share.d_v; }

  /// The type of the result of one block before it is merged or added. Our own kernels give the f32
  /// in which they sum; cuDNN rounds its results to the type of the tensors.
  Dtype part_dtype() const {
    return layer_.kernels.softmax == SoftmaxBody::cudnn ? layer_.dtype : Dtype::f32;
  }

  /// out and lse of queries whose keys are all in one block, so that nothing is merged. `out` is
  /// `o` itself if the kernels give its type.
  PartialOutput result_of_one_block(const Slice& o) {
    if (layer_.pass == Pass::backward || part_dtype() != o.dtype) return result(o);
    return {o, saved_for_backward(schedule_, layer_, "lse", rows())};
  }

  /// out and lse of this rank's queries over the whole sequence, as the backward pass needs them:
  /// `out` is the f32 sums of `o`. A backward pass alone has both as inputs.
  PartialOutput result(const Slice& o) {
    return {layer_.pass == Pass::backward ? saved_for_backward(schedule_, layer_, "out", values())
                                          : sums_of(schedule_, o, "out"),
            saved_for_backward(schedule_, layer_, "lse", rows())};
  }

  /// Sizes of attention between two ranks: all queries of one over the keys of the other.
  SoftmaxShape shape(RankPair pair) const {
    const LayerShape& share = layer_.share;
    return {cut_.share(pair.queries),
            cut_.share(pair.keys),
            share.heads,
            share.d_k,
            share.d_v,
            cut_.positions(pair.queries),
            cut_.positions(pair.keys),
            layer_.dtype,
            share.kv_heads,
            share.latent,
            layer_.kernels.softmax,
            Dtype::f32,
            mask_};
  }

  /// Sizes of attention between two ranks, for the last `queries` queries of their rank.
  SoftmaxShape shape(RankPair pair, std::int64_t queries) const {
    SoftmaxShape last = shape(pair);
    last.q_positions = last.q_positions.last(queries, last.q_tokens);
    last.q_tokens = queries;
    return last;
  }

  /// Number of queries of the pair that may see a key, without a window and packed documents. They
  /// are the last ones of their rank. Under a full mask all may, though a rank's keys can all be
  /// padding.
  std::int64_t seeing(RankPair pair) const {
    const SoftmaxShape all = shape(pair);
    if (all.k_tokens == 0) return 0;
    const std::int64_t first = mask_.first_query(all.k_positions.at(0));
    return all.q_tokens - all.q_positions.visible(first - 1, all.q_tokens);
  }

  /// True if any query of the pair may see any key.
  bool is_visible(RankPair pair) const {
    return seeing(pair) > 0 && (!mask_.hides_first_keys() || shape(pair).visible_pairs() > 0);
  }

  /// Sets `result` to the attention of queries `q`, the last ones of their rank, over `block`.
  void attend(const PartialOutput& result, const Slice& q, const RingBlock& block, RankPair pair,
              Source source = Source::current()) {
    if (q.empty()) return;
    const std::int64_t queries = q.count / (layer_.share.heads * layer_.share.d_k);
    SoftmaxShape sizes = shape(pair, queries);
    sizes.out_dtype = result.out.dtype;
    record<SoftmaxBlock>(schedule_, sizes,
                         {.in = {q, block.k, block.v}, .out = result.out, .lse = result.lse}, source);
  }

  /// Merges `part` into `sum`, which belongs to the same queries.
  void merge(const PartialOutput& sum, const PartialOutput& part, Source source = Source::current()) {
    const int rank = schedule_.rank();  // a merge does not depend on positions
    SoftmaxShape sizes = shape({rank, rank}, sum.lse.count / layer_.share.heads);
    sizes.out_dtype = part.out.dtype;
    record<MergeSoftmax>(schedule_, sizes,
                         {.out = sum.out, .lse = sum.lse, .block_out = part.out, .block_lse = part.lse},
                         source);
  }

  /// Sets `delta` of a rank's own queries to rowsum(d_o (.) out).
  void set_delta(const Slice& delta, const Slice& d_o, const Slice& out, Source source = Source::current()) {
    if (delta.empty()) return;
    const int rank = schedule_.rank();
    SoftmaxShape sizes = shape({rank, rank});
    sizes.out_dtype = out.dtype;
    record<SoftmaxDelta>(schedule_, sizes, {.d_o = d_o, .out = out, .delta = delta}, source);
  }

  /// Adds the gradients of `queries`, the last ones of their rank, to `dq`, and the gradients of
  /// `block` to `into`. All of them are f32.
  void add_gradients(const Slice& dq, const RingBlock& into, const QuerySide& queries, const RingBlock& block,
                     RankPair pair, Source source = Source::current()) {
    record_gradients({dq, into, false, false}, queries, block, pair, source);
  }

  /// Adds the gradients of `queries` to `dq`, or sets it if `begins_dq`, and sets `into` to the
  /// gradients of `block`. Either is of f32 or of `part_dtype`.
  void begin_gradients(bool begins_dq, const Slice& dq, const RingBlock& into, const QuerySide& queries,
                       const RingBlock& block, RankPair pair, Source source = Source::current()) {
    if (layer_.kernels.softmax == SoftmaxBody::cudnn)
      return record_gradients({dq, into, begins_dq, true}, queries, block, pair, source);
    // Our own kernels add.
    if (begins_dq) fill(schedule_, dq, 0.0F, source);
    const bool adjoin = into.k.buffer == into.v.buffer && into.k.end() == into.v.offset;
    fill(schedule_, adjoin ? Slice{into.k.buffer, into.k.offset, into.k.count + into.v.count} : into.k, 0.0F,
         source);
    if (!adjoin) fill(schedule_, into.v, 0.0F, source);
    add_gradients(dq, into, queries, block, pair, source);
  }

 private:
  /// Memory for the gradients of a block, and whether they are set or added.
  struct GradientMemory {
    Slice dq;
    RingBlock keys;
    bool sets_dq, sets_keys;
  };

  void record_gradients(const GradientMemory& into, const QuerySide& queries, const RingBlock& block,
                        RankPair pair, Source source) {
    if (queries.q.empty()) return;
    record<SoftmaxBlockGradients>(schedule_,
                                  {shape(pair, queries.lse.count / layer_.share.heads),
                                   {into.dq.dtype, into.sets_dq},
                                   {into.keys.k.dtype, into.sets_keys}},
                                  {.in = {queries.q, block.k, block.v},
                                   .d_o = queries.d_o,
                                   .lse = queries.lse,
                                   .delta = queries.delta,
                                   .dq = into.dq,
                                   .dk = into.keys.k,
                                   .dv = into.keys.v},
                                  source);
  }

  Schedule& schedule_;
  const Layer& layer_;
  Cut cut_;
  Mask mask_;  // with the layer's documents
};

/// The last `count` elements of a slice.
inline Slice last(const Slice& slice, std::int64_t count) { return slice.part(slice.count - count, count); }

/// The f32 sums of a rank's gradients.
struct GradientSums {
  Slice dq;
  RingBlock block;  ///< Sums of dk and dv.
};

/// Memory for the f32 sums of a rank's gradients.
inline GradientSums sums_of_gradients(Schedule& schedule, const LayerTensors& x) {
  return {sums_of(schedule, x.dq, "dq_sums"),
          {sums_of(schedule, x.dk, "dk_sums"), sums_of(schedule, x.dv, "dv_sums"), {}}};
}

/// Memory for the f32 sums of a rank's gradients, which starts as zeros.
inline GradientSums zero_gradients(Schedule& schedule, const LayerTensors& x) {
  const GradientSums sums = sums_of_gradients(schedule, x);
  for (const Slice& slice : {sums.dq, sums.block.k, sums.block.v}) fill(schedule, slice, 0.0F);
  return sums;
}

/// Sets a rank's gradients to their f32 sums.
inline void set_gradients(Schedule& schedule, const LayerTensors& x, const GradientSums& sums) {
  set(schedule, x.dq, sums.dq);
  set(schedule, x.dk, sums.block.k);
  set(schedule, x.dv, sums.block.v);
}

/// Records turns 0 to `last_turn` of a method, and the return of the last results. Its member
/// functions take a turn: `fetch` and `give_back` record messages, `work` and `merge` local steps.
/// The results of turn 0 are the rank's own.
template <class Method>
void run_in_turns(Schedule& schedule, const Layer& layer, int last_turn, Method& method) {
  for (int turn = 0; turn <= last_turn + 1; ++turn) {
    if (turn < last_turn) method.fetch(turn + 1);
    if (turn > 1) method.give_back(turn - 1);
    wait_if_exposed(schedule, layer);
    if (turn <= last_turn) method.work(turn);
    if (turn > 1) method.merge(turn - 1);
    schedule.fence();
  }
}

/// The hops that a method claims if its results wait for just those ranks whose keys a query sees.
/// A window or packed documents may leave any of them, so no hops are claimed then: -1.
inline int hops_if_seen(const Layer& layer, int hops) {
  return layer.starts.empty() && !layer.mask.has_window() ? hops : -1;
}

/// The reason why no method of softmax attention with this layout can run this layer; empty if one
/// can.
inline Refusal unsupported_softmax(const Layer& layer, Layout layout) {
  if (layer.share.gate != GateKind::none) return "softmax attention has no gates";
  if (layout == zigzag && layer.shares.are_equal() && layer.share.tokens % 2 != 0)
    return "zigzag gives each rank two equal pieces, and " + std::to_string(layer.share.tokens) +
           " tokens a rank are odd";
  return unsupported_in_a_ring(layer);
}

/// Registers a method of softmax attention that runs every layer with `layout`, which `build` gets.
template <class Build, class Claim>
RegisteredMethod softmax_method(const std::string& name, const std::string& summary, Layout layout,
                                const Build& build, const Claim& claim, bool shares_unequally = false) {
  return RegisteredMethod({
      .name = name,
      .summary = summary,
      .attention = Attention::softmax,
      .packs = true,
      .shares_unequally = shares_unequally,
      .build = [=](Schedule& s, const Layer& layer, const LayerTensors& x) { build(s, layer, x, layout); },
      .claim = claim,
      .unsupported = [=](const Layer& layer, int) { return unsupported_softmax(layer, layout); },
      .layout = layout,
  });
}

}  // namespace baton
