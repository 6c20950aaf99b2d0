// SPDX-License-Identifier: Apache-2.0
// Bodies of the left products, in square tiles whose scores stay in a core's cache.
#include "sp_methods/kernels/host/left_product/tiles.hpp"

namespace baton {
namespace {

constexpr Index tile_tokens = 128;

/// Calls body(first row, rows, first column, columns) for every tile.
template <class Body>
void for_tiles(Index rows, Index columns, const Body& body) {
  for (Index i = 0; i < rows; i += tile_tokens) {
    for (Index j = 0; j < columns; j += tile_tokens) {
      body(i, std::min(tile_tokens, rows - i), j, std::min(tile_tokens, columns - j));
    }
  }
}

}  // namespace

void add_left_product(TileRef o, const ConstTileRef& q, const ConstTileRef& k, const ConstTileRef& v,
                      float s) {
  Tile a;
  for_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
    a.noalias() = q.middleRows(i, rows) * k.middleRows(j, columns).transpose();
    o.middleRows(i, rows).noalias() += s * (a * v.middleRows(j, columns));
  });
}

void add_left_product_gradients(LeftProductGradients out, const ConstTileRef& q, const ConstTileRef& k,
                                const ConstTileRef& v, const ConstTileRef& d_o, float s) {
  Tile a;
  for_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
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
