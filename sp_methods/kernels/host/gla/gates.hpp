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

/// Greatest |x| at which e^{x} and e^{-x} may stand in separate fp32 factors.
inline constexpr float gate_guard = 60.0F;

/// Sets x [n, width] to b_i - b_reference for log gates g [n, width]; reference -1: the edge before
/// token 0.
void relative_gates(Tile& x, const ConstTileRef& g, Index reference);

/// Whether every |x| of relative gates stays below gate_guard; x is monotone, so its outer rows
/// tell.
bool within_guard(const Tile& x);

/// Sets factor to e^{sign x}; what is below e^{-80} is e^{-80}, so that no product meets denormal
/// numbers.
void set_decays(Tile& factor, const Tile& x, float sign);

/// Sets out [n, d] to in (.) factor, with factor [n, d], [n, 1] or [n, 0].
void scale_rows(Tile& out, const ConstTileRef& in, const Tile& factor);

/// Adds in (.) factor to out [n, d], with factor [n, d], [n, 1] or [n, 0].
void add_scaled_rows(TileRef out, const Tile& in, const Tile& factor);

/// Replaces terms [n, d] by their sums over the rows at and after each row.
void suffix_sum(Tile& terms);

/// Adds terms [n, d_k] to dg [n, width]: as they are for width d_k, summed over channels for width
/// 1.
void add_gate_gradient(TileRef dg, const Tile& terms);

/// Adds log gates g [n, width], summed over tokens, to total [d_k]; width 1 is broadcast, width 0
/// is zero.
void add_total_gate(Eigen::ArrayXd& total, const ConstTileRef& g);

/// The decay e^{total} [d_k] of a summed log gate.
Eigen::ArrayXf decay_of(const Eigen::ArrayXd& total);

}  // namespace baton
