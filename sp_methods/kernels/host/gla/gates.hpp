// SPDX-License-Identifier: Apache-2.0
// Decays of tokens relative to one reference token, and their products with rows of queries and
// keys.
//
//   x_i = b_i - b_r,   b_i = g_0 + .. + g_i          summed outwards from r, so it is exact near r
//   a query row at or after r carries e^{x_i} <= 1, a key row at or before r carries e^{-x_i} <= 1
//   gates of width d_k, 1 and 0 share the code: width 1 is broadcast, width 0 means a factor of one
//
// Cost: one addition and one exponential a gate element. Both are vectorised over channels.
// Source: "Gated Linear Attention Transformers", arXiv 2312.06635 (secondary-level chunking).
#pragma once

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Upper bound of |x| for which e^{x} and e^{-x} may be separate fp32 factors.
inline constexpr float gate_guard = 60.0F;
/// Lower bound of exponents, which keeps products free of denormal numbers.
inline constexpr float least_exponent = -80.0F;

/// Sets x [n, width] to b_i - b_reference for log gates g [n, width]; reference -1 is the edge
/// before token 0.
void relative_gates(Tile& x, const ConstTileRef& g, Index reference);

/// True if every |x| of relative gates is below gate_guard. It reads the outer rows alone, as x is
/// monotone.
bool within_guard(const Tile& x);

/// Sets factor to e^{sign x}, at least e^{-80} so that no product meets denormal numbers.
void set_decays(Tile& factor, const Tile& x, float sign);

/// Sets out [n, d] to in (.) factor, with factor [n, d], [n, 1] or [n, 0].
void scale_rows(Tile& out, const ConstTileRef& in, const Tile& factor);

/// Adds in (.) factor to out [n, d], with factor [n, d], [n, 1] or [n, 0].
void add_scaled_rows(TileRef out, const Tile& in, const Tile& factor);

/// Replaces terms [n, d] by their sums over the rows at and after each row.
void suffix_sum(Tile& terms);

/// Adds terms [n, d_k] to dg [n, width]: as they are for width d_k, or summed over channels for
/// width 1.
void add_gate_gradient(TileRef dg, const Tile& terms);

/// Sets dg [n, width] of a chunk from `sums` [n, d_k] of pairs that pass each gate and end in the
/// chunk, `passing` [d_k] of pairs across it, and `leaving` [n, d_k] of its tokens with later ones.
void set_chunk_gate_gradient(TileRef dg, Tile& sums, Eigen::RowVectorXf passing, const Tile& leaving);

/// Adds the sum over tokens of log gates g [n, width] to total [d_k]. Width 1 is broadcast, and
/// width 0 adds nothing.
void add_total_gate(Eigen::ArrayXd& total, const ConstTileRef& g);

/// The decay e^{total} [d_k] of a summed log gate, at least e^{-80}.
Eigen::ArrayXf decay_of(const Eigen::ArrayXd& total);

/// Multiplies the columns of x [n, d_k] by gamma [d_k].
inline void decay_columns(Tile& x, const Eigen::RowVectorXf& gamma) { x.array().rowwise() *= gamma.array(); }

/// The decays e^b, e^{b_C - b} and e^{b_C} of one chunk of one head, where b is summed from the
/// chunk's start. All are <= 1 for any gate.
struct ChunkDecays {
  /// Sets all members for the chunk of the tokens `of`.
  void set_decays_of(const GlaHead& head, Tokens of);

  Tokens tokens;
  Tile from_start, to_end;   ///< [n, width of the gate]
  Eigen::RowVectorXf gamma;  ///< [d_k]

 private:
  Tile gates_;
  Eigen::ArrayXd total_;
};

}  // namespace baton
