// SPDX-License-Identifier: Apache-2.0
// The left product of query rows with key rows that all come earlier, in square tiles whose scores
// stay in a core's cache.
//
//   for row tiles I, column tiles J:   a = s q_I k_J^T      o_I += a v_J
//   backward:   da = s d_o_I v_J^T      dv_J += a^T d_o_I     dq_I += da k_J     dk_J += da^T q_I
//
// q and k are already scaled by decays to a common reference; dq and dk are gradients of the scaled
// rows.
// Cost: 2 rows columns (d_k + d_v) flop forward, rows columns (6 d_k + 4 d_v) backward.
#pragma once

#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

/// Calls body(first row, rows, first column, columns) for every tile.
template <class Body>
void for_score_tiles(Index rows, Index columns, const Body& body) {
  constexpr Index tokens = 128;
  for (Index i = 0; i < rows; i += tokens)
    for (Index j = 0; j < columns; j += tokens)
      body(i, std::min(tokens, rows - i), j, std::min(tokens, columns - j));
}

/// Adds s q k^T v to o [rows, d_v], for q [rows, d_k], k [columns, d_k], v [columns, d_v].
inline void add_left_product(TileRef o, const ConstTileRef& q, const ConstTileRef& k, const ConstTileRef& v,
                             float s) {
  Tile a;
  for_score_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
    a.noalias() = q.middleRows(i, rows) * k.middleRows(j, columns).transpose();
    o.middleRows(i, rows).noalias() += s * (a * v.middleRows(j, columns));
  });
}

/// The gradients that one left product adds to, shaped as q, k and v.
struct LeftProductTileGradients {
  TileRef dq, dk, dv;
};

/// Adds the gradients of add_left_product for the output's gradient d_o [rows, d_v].
inline void add_left_product_gradients(LeftProductTileGradients out, const ConstTileRef& q,
                                       const ConstTileRef& k, const ConstTileRef& v, const ConstTileRef& d_o,
                                       float s) {
  Tile a;
  for_score_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
    const auto q_i = q.middleRows(i, rows), do_i = d_o.middleRows(i, rows);
    const auto k_j = k.middleRows(j, columns), v_j = v.middleRows(j, columns);
    a.noalias() = q_i * k_j.transpose();
    out.dv.middleRows(j, columns).noalias() += s * (a.transpose() * do_i);
    a.noalias() = do_i * v_j.transpose();
    out.dq.middleRows(i, rows).noalias() += s * (a * k_j);
    out.dk.middleRows(j, columns).noalias() += s * (a.transpose() * q_i);
  });
}

}  // namespace baton
