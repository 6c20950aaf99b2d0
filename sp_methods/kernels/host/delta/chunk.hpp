// SPDX-License-Identifier: Apache-2.0
// One chunk of one head under a delta rule, in the form that all passes over chunks share.
//
//   b = cumsum(g), gamma = e^{b_C}, Q~ = q e^b, K~ = k e^b, K^ = k e^{b_C - b}, B = Diag(beta)
//   G, Aqk: decayed scores of keys and queries with keys (scores.hpp), s = d_k^{-1/2}
//
//   missing:  (I + G B) R = V - K~ X^T          triangular solve: R_t = v_t - S'^T k_t of token t
//   written:  Vn = B R
//   advance:  X <- X Diag(gamma) + Vn^T K^
//   output:   O = s (Q~ X^T + Aqk Vn)
//   reverse:  (I + B G)^T Z = dVn               the gradient of each token's own write
//
// A state X [rows, d_k] has its values first. All decays are <= 1, so any gate is safe.
// This is the WY form with T = (I + B G)^{-1} B applied to V - K~ X^T at once. W = T K~ and U = T V
// apart would cost one more solve, and pay only where they are made before X is known.
// Cost of n tokens: n^2 (2 d_k + rows) + 4 n d_k rows flop for missing and advance, as much again
// for the output.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484; "Gated Delta
// Networks", arXiv 2412.06464.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/host/delta/scores.hpp"

namespace baton {

/// One head of a layer with a delta rule.
struct DeltaHead {
  const DeltaInputs<OnHost>& in;
  const LayerShape& shape;
  Index head = 0;

  GlaHead of() const { return {in.of, shape, head}; }
  /// The beta of some tokens [n].
  Eigen::VectorXf beta(Tokens t) const { return head_rows(in.beta, t, head, shape.heads, 1).col(0); }
};

/// The chunkwise form of a delta rule for one chunk, with scratch memory kept between chunks.
class DeltaChunk : public ChunkDecays {
 public:
  using Head = DeltaHead;

  /// Makes the chunks of a head; q is not read without queries.
  DeltaChunk(const DeltaHead& in, ChunkUse use)
      : in_(in), has_queries_(use.queries), scores_(in.of(), use.queries) {}

  /// Sets all members to chunk n.
  void set(Index n) {
    set_decays_of(in_.of(), chunk_tokens(in_.shape, n));
    beta = in_.beta(tokens);
    scale_rows(keys_in, in_.of().k(tokens), from_start);
    scale_rows(keys_out, in_.of().k(tokens), to_end);
    if (has_queries_) scale_rows(queries_in, in_.of().q(tokens), from_start);
    scores_.set(tokens);
  }

  /// Sets r [n, rows] to each token's v - S'^T k, without beta, for the state x [rows, d_k] before
  /// the chunk. Columns of r beyond those of v [n, ..] have no values.
  void set_missing(Tile& r, const Tile& x, const ConstTileRef& v) {
    set_product(r, keys_in, transposed(x), -1);
    r.leftCols(v.cols()) += v;
    x_.noalias() = scores_.keys * beta.asDiagonal();
    solve_unit_lower(x_, r);
  }

  /// Sets `written` [n, rows] to what the tokens write: set_missing times beta.
  void set_read(Tile& written, const Tile& x, const ConstTileRef& v) {
    set_missing(written, x, v);
    written = beta.asDiagonal() * written;
  }

  /// Moves the state x from before the chunk to behind it.
  void advance(Tile& x, const Tile& written, const ConstTileRef& /*v*/) const {
    decay_columns(x, gamma);
    add_product(x, transposed(written), keys_out);
  }

  /// Sets o [n, rows] from the state before the chunk and the written values of its tokens.
  void set_output(TileRef o, const Tile& x, const Tile& written, const ConstTileRef& /*v*/) const {
    const float s = in_.shape.scale();
    o.setZero();
    add_product(o, queries_in, transposed(x), s);
    add_product(o, scores_.queries, written, s);
  }

  /// Turns the gradient of the written values, from outputs and the state behind the chunk, into
  /// the one that includes their effect on later tokens of the chunk.
  void solve_reverse(Tile& d_written) {
    x_.noalias() = beta.asDiagonal() * scores_.keys;
    solve_unit_lower(transposed(x_), d_written);
  }

  /// Moves the gradient of the state from behind the chunk to before it; dv = B Z [n, d_v].
  void retreat(Tile& gradient, const ConstTileRef& d_o, const Tile& dv) const {
    decay_columns(gradient, gamma);
    add_product(gradient, transposed(d_o), queries_in, in_.shape.scale());
    add_product(gradient, transposed(dv), keys_in, -1);
  }

  /// Sets d_written [n, d_v] to the gradient of the written values, from outputs and the state
  /// behind the chunk.
  void set_written_gradient(Tile& d_written, const ConstTileRef& d_o, const Tile& gradient) const {
    set_product(d_written, keys_out, transposed(gradient));
    add_product(d_written, transposed(scores_.queries), d_o, in_.shape.scale());
  }

  /// Sets dv [n, d_v] to the gradient of the values, from outputs and the state behind the chunk.
  void set_read_gradient(Tile& dv, const ConstTileRef& d_o, const Tile& gradient) {
    set_written_gradient(dv, d_o, gradient);
    solve_reverse(dv);
    dv = beta.asDiagonal() * dv;
  }

  Eigen::VectorXf beta;                ///< [n]
  Tile queries_in, keys_in, keys_out;  ///< [n, d_k]: Q~, K~, K^

 private:
  DeltaHead in_;
  bool has_queries_;
  ChunkScores scores_;
  Tile x_;
};

}  // namespace baton
