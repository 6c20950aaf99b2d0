// SPDX-License-Identifier: Apache-2.0
// Attention without softmax of query rows against key rows that all come earlier, without a state.
//
//   for row tiles I, column tiles J:   A = s Q_I K_J^T      O_I += A V_J
//   backward:   dA = s dO_I V_J^T      dV_J += A^T dO_I     X_I += dA K_J     Y_J += dA^T Q_I
//
// Q and K are already scaled by decays to a common reference; X and Y are gradients of the scaled rows.
// Cost: 2 rows columns (d_k + d_v) flop forward, rows columns (6 d_k + 4 d_v) backward, A formed anew.
// Source: "LASP-2", arXiv 2502.07563, section 4.1 (the left-product baseline).
#pragma once

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Adds s Q K^T V to o [rows, d_v], for q [rows, d_k], k [columns, d_k], v [columns, d_v].
void add_left_product(TileRef o, const ConstTileRef& q, const ConstTileRef& k, const ConstTileRef& v,
                      float s);

/// The gradients that one left product adds to.
struct LeftProductGradients {
  TileRef dq;  ///< [rows, d_k], of the scaled queries.
  TileRef dk;  ///< [columns, d_k], of the scaled keys.
  TileRef dv;  ///< [columns, d_v]
};

/// Adds the gradients of add_left_product for the output's gradient d_o [rows, d_v].
void add_left_product_gradients(LeftProductGradients out, const ConstTileRef& q, const ConstTileRef& k,
                                const ConstTileRef& v, const ConstTileRef& d_o, float s);

}  // namespace baton
