// SPDX-License-Identifier: Apache-2.0
// The decayed scores of all pairs of tokens within one chunk of one head under a low-rank rule, and
// their gradients. Rows of later tokens are queries q and reads r = a e^{-g}; rows of earlier
// tokens are keys k and writes b.
//
//   read:    reads_ij   = r_i . b_j e^{c_i - c_j},   with k_j in its place for values    j < i
//   query:   queries_ij = q_i . b_j e^{c_i - c_j},   with k_j in its place for values    j <= i
//
// A token reads the state before its own gate, and c_i is the sum of gates up to its own: hence the
// factor e^{-g}.
// Cost: 2 n^2 d_k flop for each of up to four scores of a chunk of n tokens, twice that for their
// gradients.
// Source: "RWKV-7", arXiv 2503.14456 (chunkwise form).
#pragma once

#include "sp_methods/kernels/host/delta/scores.hpp"
#include "sp_methods/kernels/low_rank.hpp"

namespace baton {

/// One head of a layer with a low-rank rule.
struct LowRankHead {
  const LowRankInputs<OnHost>& in;
  const LayerShape& shape;
  Index head = 0;

  GlaHead of() const { return {in.of, shape, head}; }
  ConstTileView a(Tokens t) const { return head_rows(in.a, t, head, shape.heads, shape.d_k); }
  ConstTileView b(Tokens t) const { return head_rows(in.b, t, head, shape.heads, shape.d_k); }
};

/// Pairs of tokens of one chunk of a low-rank rule, with the head's inputs.
class LowRankPairs : public ChunkPairs {
 protected:
  explicit LowRankPairs(const LowRankHead& head) : ChunkPairs(head.of()), head_(head) {}

  LowRankHead head_;
};

/// The scores of a chunk of a low-rank rule.
class LowRankScores : public LowRankPairs {
 public:
  LowRankScores(const LowRankHead& head, ChunkUse use) : LowRankPairs(head), use_(use) {}

  /// Sets the scores to those of the tokens `t`, whose reads are `reads` [n, d_k].
  void set(Tokens t, Tile& reads) {
    start(t);
    reads_ = &reads;
    for (Tile* scores : {&read_writes, &read_values, &query_writes, &query_values})
      scores->resize(t.count, t.count);
    add(t);
    // What later rows left above the diagonal may be infinite, so it is overwritten.
    for (Tile* scores : {&read_writes, &read_values}) scores->triangularView<Eigen::Upper>().setZero();
    for (Tile* scores : {&query_writes, &query_values})
      scores->triangularView<Eigen::StrictlyUpper>().setZero();
  }

  Tile read_writes, read_values;    ///< [n, n]: of reads with b, and with k.
  Tile query_writes, query_values;  ///< [n, n]: of queries with b, and with k.

 private:
  void visit(Tokens high, Tokens low) override {
    scale_rows(k_, head_.b(low), k_decay_);
    set_scores(read_writes, query_writes, high, low);
    if (!use_.values) return;
    scale_rows(k_, in_.k(low), k_decay_);
    set_scores(read_values, query_values, high, low);
  }

  void set_scores(Tile& of_reads, Tile& of_queries, Tokens high, Tokens low) {
    scale_rows(q_, part(*reads_, high), q_decay_);
    set_part(of_reads, high, low);
    if (!use_.queries) return;
    scale_rows(q_, in_.q(high), q_decay_);
    set_part(of_queries, high, low);
  }

  ChunkUse use_;
  Tile* reads_ = nullptr;
};

/// The gradients of queries, reads, k and b from the gradients of a chunk's scores.
class LowRankScoreGradients : public LowRankPairs {
 public:
  explicit LowRankScoreGradients(const LowRankHead& head) : LowRankPairs(head) {}

  /// Adds the gradients of rows from those of the scores, which are zero on and above the diagonal.
  void add_pairs(Tokens t, Tile& reads) {
    start(t);
    reads_ = &reads;
    add(t);
  }

  Tile read_writes, read_values, query_writes, query_values;  ///< [n, n]: gradients of scores.
  Tile dq, d_reads, dk, db;                                   ///< [n, d_k]

 private:
  void visit(Tokens high, Tokens low) override {
    scale_rows(q_, in_.q(high), q_decay_);
    scale_rows(r_, part(*reads_, high), q_decay_);
    scale_rows(k_, in_.k(low), k_decay_);
    scale_rows(b_, head_.b(low), k_decay_);
    add_later(dq, query_values, query_writes, high, low);
    add_later(d_reads, read_values, read_writes, high, low);
    add_earlier(dk, query_values, read_values, high, low);
    add_earlier(db, query_writes, read_writes, high, low);
  }

  void add_later(Tile& rows, Tile& of_values, Tile& of_writes, Tokens high, Tokens low) {
    set_product(a_, part(of_values, high, low), k_);
    add_product(a_, part(of_writes, high, low), b_);
    add_scaled_rows(part(rows, high), a_, q_decay_);
  }

  void add_earlier(Tile& rows, Tile& of_queries, Tile& of_reads, Tokens high, Tokens low) {
    set_product(a_, transposed(part(of_queries, high, low)), q_);
    add_product(a_, transposed(part(of_reads, high, low)), r_);
    add_scaled_rows(part(rows, low), a_, k_decay_);
  }

  Tile* reads_ = nullptr;
  Tile r_, b_;
};

}  // namespace baton
