// SPDX-License-Identifier: Apache-2.0
// One chunk of one head under a low-rank rule, in the form that all passes over chunks share.
//
//   c = cumsum(g), gamma = e^{c_C}, r = a e^{-g}
//   Q~ = q e^c, R~ = r e^c, K^ = k e^{c_C - c}, B^ = b e^{c_C - c}
//   Arb, Arv, Aqb, Aqv: decayed scores of reads and queries with writes and keys (scores.hpp)
//
//   read:     (I - Arb) U = R~ X^T + Arv V         triangular solve: U_t = S_{t-1}^T a_t of token t
//   advance:  X <- X Diag(gamma) + U^T B^ + V^T K^
//   output:   O = s (Q~ X^T + Aqb U + Aqv V)
//   reverse:  (I - Arb)^T Z = B^ D^T + s Aqb^T dO   the gradient of what each token reads
//   retreat:  D <- D Diag(gamma) + s dO^T Q~ + Z^T R~
//
// A state X [rows, d_k] has its values first. Rows of X without values have no V. A delta rule
// writes along the key that it reads with, so it has two kinds of scores (delta/chunk.hpp).
// Cost of n tokens: n^2 (4 d_k + 3 rows) + 6 n d_k rows flop for read and advance, n^2 (4 d_k + 4
// rows) + 2 n d_k rows for the output.
// Source: "RWKV-7", arXiv 2503.14456; "Parallelizing Linear Transformers with the Delta Rule",
// arXiv 2406.06484 (the triangular system).
#pragma once

#include "sp_methods/kernels/host/low_rank/scores.hpp"

namespace baton {

/// The chunkwise form of a low-rank rule for one chunk, with scratch memory kept between chunks.
class LowRankChunk : public ChunkDecays {
 public:
  using Head = LowRankHead;

  /// Makes the chunks of a head; inputs that `use` leaves out are not read.
  LowRankChunk(const LowRankHead& head, ChunkUse use) : head_(head), use_(use), scores_(head, use) {}

  /// Sets all members to chunk n.
  void set(Index n) {
    set_decays_of(head_.of(), chunk_tokens(head_.shape, n));
    set_decays(before_gate, head_.of().g(tokens), -1.0F);
    scale_rows(reads, head_.a(tokens), before_gate);
    scale_rows(reads_in, reads, from_start);
    scale_rows(writes_out, head_.b(tokens), to_end);
    if (use_.values) scale_rows(keys_out, head_.of().k(tokens), to_end);
    if (use_.queries) scale_rows(queries_in, head_.of().q(tokens), from_start);
    scores_.set(tokens, reads);
  }

  /// Sets u [n, rows] to the values that the tokens read, for the state x [rows, d_k] before the
  /// chunk. The first rows of the state have the values v [n, ..].
  void set_read(Tile& u, const Tile& x, const ConstTileRef& v) {
    set_product(u, reads_in, transposed(x));
    if (v.cols() > 0) add_product(u.leftCols(v.cols()), scores_.read_values, v);
    x_ = -scores_.read_writes;
    solve_unit_lower(x_, u);
  }

  /// Moves the state x from before the chunk to behind it.
  void advance(Tile& x, const Tile& u, const ConstTileRef& v) const {
    decay_columns(x, gamma);
    add_product(x, transposed(u), writes_out);
    if (v.cols() > 0) add_product(x.topRows(v.cols()), transposed(v), keys_out);
  }

  /// Sets o [n, rows] from the state before the chunk and the values u that its tokens read.
  void set_output(TileRef o, const Tile& x, const Tile& u, const ConstTileRef& v) const {
    const float s = head_.shape.scale();
    o.setZero();
    add_product(o, queries_in, transposed(x), s);
    add_product(o, scores_.query_writes, u, s);
    if (v.cols() > 0) add_product(o.leftCols(v.cols()), scores_.query_values, v, s);
  }

  /// Sets z [n, d_v] to the gradient of the values that the tokens read, from outputs and from the
  /// gradient of the state behind the chunk.
  void set_read_gradient(Tile& z, const ConstTileRef& d_o, const Tile& gradient) {
    set_product(z, writes_out, transposed(gradient));
    add_product(z, transposed(scores_.query_writes), d_o, head_.shape.scale());
    x_ = -scores_.read_writes;
    solve_unit_lower(transposed(x_), z);
  }

  /// Sets dv [n, d_v] from outputs, the gradient behind the chunk and the gradient z of what is
  /// read.
  void set_value_gradient(TileRef dv, const ConstTileRef& d_o, const Tile& gradient, const Tile& z) const {
    dv.setZero();
    add_product(dv, keys_out, transposed(gradient));
    add_product(dv, transposed(scores_.query_values), d_o, head_.shape.scale());
    add_product(dv, transposed(scores_.read_values), z);
  }

  /// Moves the gradient of the state from behind the chunk to before it.
  void retreat(Tile& gradient, const ConstTileRef& d_o, const Tile& z) const {
    decay_columns(gradient, gamma);
    add_product(gradient, transposed(d_o), queries_in, head_.shape.scale());
    add_product(gradient, transposed(z), reads_in);
  }

  Tile before_gate;                                 ///< e^{-g}, as wide as the gate.
  Tile reads;                                       ///< [n, d_k]
  Tile queries_in, reads_in, keys_out, writes_out;  ///< [n, d_k]: Q~, R~, K^, B^

 private:
  LowRankHead head_;
  ChunkUse use_;
  LowRankScores scores_;
  Tile x_;
};

}  // namespace baton
