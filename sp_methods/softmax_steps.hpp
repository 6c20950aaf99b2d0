// SPDX-License-Identifier: Apache-2.0
// The steps that methods of causal softmax attention have in common: one rank's queries against one
// rank's keys, the merge of such partial results, and their gradients.
//
//   attend:     out, lse = attention of the queries of rank a over the keys of rank b
//   merge:      two partial results of the same queries become one
//   gradients:  from out and lse over the whole sequence, d_o and delta: dq, dk, dv of the pair
//
// Source: Dao, "FlashAttention-2", 2023; zhuzilin/ring-flash-attention (the merge).
#pragma once

#include <source_location>

#include "sp_methods/ring.hpp"

namespace baton {

/// The positions of a rank's tokens.
using Layout = Positions (*)(int rank, int ranks, std::int64_t tokens);

inline Positions contiguous(int rank, int, std::int64_t tokens) { return contiguous_positions(rank, tokens); }

inline Positions zigzag(int rank, int ranks, std::int64_t tokens) {
  return zigzag_positions(rank, ranks, tokens);
}

inline Positions striped(int rank, int ranks, std::int64_t tokens) {
  return striped_positions(rank, ranks, tokens);
}

/// The rank that owns the queries, and the one that owns the keys.
struct RankPair {
  int queries = 0;
  int keys = 0;
};

/// A partial result of attention: f32.
struct PartialOutput {
  Slice out;  ///< [tokens, heads, d_v]
  Slice lse;  ///< [tokens, heads], natural logarithm
};

/// What the gradients of a rank's queries need.
struct QuerySide {
  Slice q;      ///< [tokens, heads, d_k]
  Slice d_o;    ///< [tokens, heads, d_v]
  Slice lse;    ///< [tokens, heads], over the whole sequence
  Slice delta;  ///< [tokens, heads]
};

/// Records these steps for one layer, whose tokens lie on the ranks as `layout` says.
class SoftmaxSteps {
 public:
  using Source = std::source_location;

  SoftmaxSteps(Schedule& schedule, const Layer& layer, Layout layout)
      : schedule_(schedule), layer_(layer), layout_(layout) {}

  /// Elements of lse, and of out, of one rank's queries.
  std::int64_t rows() const { return layer_.share.tokens * layer_.share.heads; }
  std::int64_t values() const { return rows() * layer_.share.d_v; }

  /// out and lse of this rank's queries over the whole sequence, as the backward pass needs them:
  /// `out` is the f32 sums of `o`. A backward pass alone has both as inputs.
  PartialOutput result(const Slice& o) {
    return {layer_.pass == Pass::backward ? saved_for_backward(schedule_, layer_, "out", values())
                                          : sums_of(schedule_, o, "out"),
            saved_for_backward(schedule_, layer_, "lse", rows())};
  }

  SoftmaxShape shape(RankPair pair) const {
    const GlaShape& share = layer_.share;
    const int ranks = schedule_.ranks();
    return {share.tokens,
            share.tokens,
            share.heads,
            share.d_k,
            share.d_v,
            layout_(pair.queries, ranks, share.tokens),
            layout_(pair.keys, ranks, share.tokens),
            layer_.dtype,
            share.kv_heads};
  }

  /// Whether any query sees any key: if one does, the last one does.
  bool is_visible(RankPair pair) const { return shape(pair).visible(layer_.share.tokens - 1) > 0; }

  /// Sets `result` to the attention of queries `q` over `block`.
  void attend(const PartialOutput& result, const Slice& q, const RingBlock& block, RankPair pair,
              Source source = Source::current()) {
    record<SoftmaxBlock>(schedule_, shape(pair),
                         {.in = {q, block.k, block.v}, .out = result.out, .lse = result.lse}, source);
  }

  /// Merges `part` into `sum`, which belongs to the same queries.
  void merge(const PartialOutput& sum, const PartialOutput& part, Source source = Source::current()) {
    const int rank = schedule_.rank();  // a merge does not depend on positions
    record<MergeSoftmax>(schedule_, shape({rank, rank}),
                         {.out = sum.out, .lse = sum.lse, .block_out = part.out, .block_lse = part.lse},
                         source);
  }

  /// Sets `delta` of a rank's own queries.
  void set_delta(const Slice& delta, const Slice& d_o, const Slice& out, Source source = Source::current()) {
    const int rank = schedule_.rank();
    record<SoftmaxDelta>(schedule_, shape({rank, rank}), {.d_o = d_o, .out = out, .delta = delta}, source);
  }

  /// Adds the gradients of the pair to `dq` and to `into`, all f32.
  void add_gradients(const Slice& dq, const RingBlock& into, const QuerySide& queries, const RingBlock& block,
                     RankPair pair, Source source = Source::current()) {
    record<SoftmaxBlockGradients>(schedule_, shape(pair),
                                  {.in = {queries.q, block.k, block.v},
                                   .d_o = queries.d_o,
                                   .lse = queries.lse,
                                   .delta = queries.delta,
                                   .dq = dq,
                                   .dk = into.k,
                                   .dv = into.v},
                                  source);
  }

 private:
  Schedule& schedule_;
  const Layer& layer_;
  Layout layout_;
};

/// Why no method of softmax attention with this layout can run this layer.
inline Refusal unsupported_softmax(const Layer& layer, Layout layout) {
  if (layer.share.gate != GateKind::none) return "softmax attention has no gates";
  if (layout == zigzag && layer.share.tokens % 2 != 0)
    return "zigzag gives each rank two equal pieces, and " + std::to_string(layer.share.tokens) +
           " tokens a rank are odd";
  return unsupported_in_a_ring(layer);
}

}  // namespace baton
