// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/host/products.hpp"

namespace baton {

void add_product(TileRef out, const ConstTileRef& a, const ConstTileRef& b, float factor) {
  out.noalias() += factor * (a * b);
}
void add_product(TileRef out, Transposed a, const ConstTileRef& b, float factor) {
  out.noalias() += factor * (a.of.transpose() * b);
}
void add_product(TileRef out, const ConstTileRef& a, Transposed b, float factor) {
  out.noalias() += factor * (a * b.of.transpose());
}

void set_product(Tile& out, const ConstTileRef& a, const ConstTileRef& b, float factor) {
  out.setZero(a.rows(), b.cols());
  add_product(out, a, b, factor);
}
void set_product(Tile& out, Transposed a, const ConstTileRef& b, float factor) {
  out.setZero(a.of.cols(), b.cols());
  add_product(out, a, b, factor);
}
void set_product(Tile& out, const ConstTileRef& a, Transposed b, float factor) {
  out.setZero(a.rows(), b.of.rows());
  add_product(out, a, b, factor);
}

void solve_unit_lower(const Tile& l, Tile& x) { l.triangularView<Eigen::UnitLower>().solveInPlace(x); }
void solve_unit_lower(Transposed l, Tile& x) {
  l.of.triangularView<Eigen::UnitLower>().transpose().solveInPlace(x);
}

namespace {

/// Calls body(first row, rows, first column, columns) for every tile of scores.
template <class Body>
void for_score_tiles(Index rows, Index columns, const Body& body) {
  constexpr Index tokens = 128;
  for (Index i = 0; i < rows; i += tokens)
    for (Index j = 0; j < columns; j += tokens)
      body(i, std::min(tokens, rows - i), j, std::min(tokens, columns - j));
}

}  // namespace

void add_left_product(TileRef o, const ConstTileRef& q, const ConstTileRef& k, const ConstTileRef& v,
                      float s) {
  Tile a;
  for_score_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
    set_product(a, q.middleRows(i, rows), transposed(k.middleRows(j, columns)));
    add_product(o.middleRows(i, rows), a, v.middleRows(j, columns), s);
  });
}

void add_left_product_gradients(LeftProductTileGradients out, const ConstTileRef& q, const ConstTileRef& k,
                                const ConstTileRef& v, const ConstTileRef& d_o, float s) {
  Tile a;
  for_score_tiles(q.rows(), k.rows(), [&](Index i, Index rows, Index j, Index columns) {
    const ConstTileRef q_i = q.middleRows(i, rows), do_i = d_o.middleRows(i, rows);
    const ConstTileRef k_j = k.middleRows(j, columns), v_j = v.middleRows(j, columns);
    set_product(a, q_i, transposed(k_j));
    add_product(out.dv.middleRows(j, columns), transposed(a), do_i, s);
    set_product(a, do_i, transposed(v_j));
    add_product(out.dq.middleRows(i, rows), a, k_j, s);
    add_product(out.dk.middleRows(j, columns), transposed(a), q_i, s);
  });
}

}  // namespace baton
