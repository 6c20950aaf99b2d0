// SPDX-License-Identifier: Apache-2.0
// The decayed scores of all pairs of tokens within one chunk of one head, for gates of any
// strength, and their gradients.
//
//   keys_ij    = k_i . k_j e^{b_i - b_j}   for j < i           G of the delta rule
//   queries_ij = q_i . k_j e^{b_i - b_j}   for j <= i
//
// Gates are cut as causal_block.hpp cuts them. The gradient leaves the diagonal out, since a
// token's own product passes no gate and would only cancel in dg.
// Cost: 2 n^2 d_k flop each for a chunk of n tokens, four times that for both gradients.
// Source: "Kimi Linear", arXiv 2510.26692 (chunkwise form).
#pragma once

#include "sp_methods/kernels/host/gla/causal_block.hpp"
#include "sp_methods/kernels/host/products.hpp"

namespace baton {

/// Pairs of tokens of one chunk. Derived classes handle pairs within a run, and pairs of later with
/// earlier tokens, in one function.
class ChunkPairs : public CausalBlock {
 protected:
  explicit ChunkPairs(const GlaHead& in) : CausalBlock(in, in.shape.chunk) {}

  void start(Tokens t) { origin_ = t.first; }
  /// The block of a matrix [n, n] over the chunk's tokens with rows `high` and columns `low`.
  auto part(Tile& pairs, Tokens high, Tokens low) const {
    return pairs.block(high.first - origin_, low.first - origin_, high.count, low.count);
  }
  /// The rows of tokens `t` in a matrix over the chunk's tokens.
  auto part(Tile& rows, Tokens t) const { return rows.middleRows(t.first - origin_, t.count); }

  /// Sets a block of `pairs` to q k^T, of scaled rows.
  void set_part(Tile& pairs, Tokens high, Tokens low) {
    auto block = part(pairs, high, low);
    block.setZero();
    add_product(block, q_, transposed(k_));
  }

  virtual void visit(Tokens high, Tokens low) = 0;

 private:
  void add_leaf(Tokens t) override { visit(t, t); }
  void add_rectangle(Tokens high, Tokens low) override { visit(high, low); }

  Index origin_ = 0;  // first token of the chunk
};

/// The inputs that a pass over chunks reads, of those that not every pass needs.
struct ChunkUse {
  bool queries = false;
  bool values = false;  ///< Of a low-rank rule k and v; a delta rule has no scores for values.
};

/// The scores of a chunk; q is not read without queries.
class ChunkScores : public ChunkPairs {
 public:
  ChunkScores(const GlaHead& in, bool has_queries) : ChunkPairs(in), has_queries_(has_queries) {}

  void set(Tokens t) {
    start(t);
    keys.resize(t.count, t.count);
    if (has_queries_) queries.resize(t.count, t.count);
    add(t);
    // What later keys left above the diagonal may be infinite, so it is overwritten.
    keys.triangularView<Eigen::Upper>().setZero();
    if (has_queries_) queries.triangularView<Eigen::StrictlyUpper>().setZero();
  }

  Tile keys, queries;  ///< [n, n]

 private:
  void visit(Tokens high, Tokens low) override {
    scale_rows(k_, in_.k(low), k_decay_);
    scale_rows(q_, in_.k(high), q_decay_);
    set_part(keys, high, low);
    if (!has_queries_) return;
    scale_rows(q_, in_.q(high), q_decay_);
    set_part(queries, high, low);
  }

  bool has_queries_;
};

/// The gradients of queries and keys from the gradients of a chunk's scores.
class ChunkScoreGradients : public ChunkPairs {
 public:
  explicit ChunkScoreGradients(const GlaHead& in) : ChunkPairs(in) {}

  /// Adds the gradients of rows from d_keys and d_queries, which are zero on and above the
  /// diagonal.
  void add_pairs(Tokens t) {
    start(t);
    add(t);
  }

  Tile d_keys, d_queries;  ///< [n, n]
  Tile dq;                 ///< [n, d_k]
  Tile later_dk;           ///< [n, d_k]: of keys as k_i of a pair.
  Tile earlier_dk;         ///< [n, d_k]: of keys as k_j of a pair.

 private:
  void visit(Tokens high, Tokens low) override {
    const auto of_queries = part(d_queries, high, low), of_keys = part(d_keys, high, low);
    scale_rows(k_, in_.k(low), k_decay_);
    scale_rows(q_, in_.q(high), q_decay_);
    set_product(a_, of_queries, k_);
    add_scaled_rows(part(dq, high), a_, q_decay_);
    set_product(a_, of_keys, k_);
    add_scaled_rows(part(later_dk, high), a_, q_decay_);
    set_product(a_, transposed(of_queries), q_);
    scale_rows(q_, in_.k(high), q_decay_);
    add_product(a_, transposed(of_keys), q_);
    add_scaled_rows(part(earlier_dk, low), a_, k_decay_);
  }
};

}  // namespace baton
