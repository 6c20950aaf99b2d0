// SPDX-License-Identifier: Apache-2.0
// The matrix products and triangular solves of host kernels. They are Eigen's, compiled in one
// source, since each source that has them takes seconds longer.
#pragma once

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// An operand that a product takes transposed. It is a view of a matrix in memory.
struct Transposed {
  const ConstTileRef& of;
};
inline Transposed transposed(const ConstTileRef& x) { return {x}; }

/// out += factor a b
void add_product(TileRef out, const ConstTileRef& a, const ConstTileRef& b, float factor = 1);
void add_product(TileRef out, Transposed a, const ConstTileRef& b, float factor = 1);
void add_product(TileRef out, const ConstTileRef& a, Transposed b, float factor = 1);

/// out = factor a b; `out` gets the size of the product.
void set_product(Tile& out, const ConstTileRef& a, const ConstTileRef& b, float factor = 1);
void set_product(Tile& out, Transposed a, const ConstTileRef& b, float factor = 1);
void set_product(Tile& out, const ConstTileRef& a, Transposed b, float factor = 1);

/// Replaces x by l^{-1} x, or by l^{-T} x, where l has ones on its diagonal and what is above it is
/// not read.
void solve_unit_lower(const Tile& l, Tile& x);
void solve_unit_lower(Transposed l, Tile& x);

// The left product multiplies query rows with key rows that all come earlier, in square tiles whose
// scores stay in a core's cache.
//
//   for row tiles I, column tiles J:   a = s q_I k_J^T      o_I += a v_J
//   backward:   da = s d_o_I v_J^T      dv_J += a^T d_o_I     dq_I += da k_J     dk_J += da^T q_I
//
// q and k are already scaled by decays to a common reference; dq and dk are gradients of the scaled
// rows.
// Cost: 2 rows columns (d_k + d_v) flop forward, rows columns (6 d_k + 4 d_v) backward.

/// Adds s q k^T v to o [rows, d_v], for q [rows, d_k], k [columns, d_k], v [columns, d_v].
void add_left_product(TileRef o, const ConstTileRef& q, const ConstTileRef& k, const ConstTileRef& v,
                      float s);

/// The gradients that a left product adds to, shaped as its q, k and v.
struct LeftProductTileGradients {
  TileRef dq, dk, dv;
};

/// Adds the gradients of add_left_product for the gradient d_o [rows, d_v] of the output.
void add_left_product_gradients(LeftProductTileGradients out, const ConstTileRef& q, const ConstTileRef& k,
                                const ConstTileRef& v, const ConstTileRef& d_o, float s);

}  // namespace baton
