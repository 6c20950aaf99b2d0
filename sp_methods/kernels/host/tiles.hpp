// SPDX-License-Identifier: Apache-2.0
// The tools that host kernels share: Eigen views of one head's rows in a [tokens, heads, width]
// tensor, a parallel loop, and the left product in square tiles.
//
//   row t of head h starts at x + (t heads + h) width; the distance between rows is heads * width
//
// Cost: none, views copy nothing. Include it from .cpp files of this folder only: all users of an
// Eigen type must be compiled with the same vector instruction set.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "sp_methods/kernels/shape.hpp"

namespace baton {

using Eigen::Index;
using Tile = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using TileView = Eigen::Map<Tile, Eigen::Unaligned, Eigen::OuterStride<>>;
using ConstTileView = Eigen::Map<const Tile, Eigen::Unaligned, Eigen::OuterStride<>>;
using TileRef = Eigen::Ref<Tile>;
using ConstTileRef = Eigen::Ref<const Tile>;

/// A run of a rank's tokens.
struct Tokens {
  Index first = 0;
  Index count = 0;
};

/// The tokens of chunk n; the last chunk may be shorter.
inline Tokens chunk_tokens(const LayerShape& shape, Index n) {
  if (shape.packed) return {(*shape.packed)[n].first, (*shape.packed)[n].count};
  return {n * shape.chunk, std::min(shape.chunk, shape.tokens - n * shape.chunk)};
}

/// The rows of some tokens in one head of x [tokens, heads, width].
inline TileView head_rows(float* x, Tokens tokens, Index head, Index heads, Index width) {
  return {x + (tokens.first * heads + head) * width, tokens.count, width,
          Eigen::OuterStride<>(heads * width)};
}
inline ConstTileView head_rows(const float* x, Tokens tokens, Index head, Index heads, Index width) {
  return {x + (tokens.first * heads + head) * width, tokens.count, width,
          Eigen::OuterStride<>(heads * width)};
}

/// Matrix number i of a dense x [.., rows, cols].
inline TileView matrix_at(float* x, Index i, Index rows, Index cols) {
  return {x + i * rows * cols, rows, cols, Eigen::OuterStride<>(cols)};
}
inline ConstTileView matrix_at(const float* x, Index i, Index rows, Index cols) {
  return {x + i * rows * cols, rows, cols, Eigen::OuterStride<>(cols)};
}

/// The inputs of one head of a layer, as views of its tokens' rows.
struct GlaHead {
  const GlaInputs& in;
  const LayerShape& shape;
  Index head = 0;

  ConstTileView q(Tokens t) const { return head_rows(in.q, t, head, shape.heads, shape.d_k); }
  ConstTileView k(Tokens t) const { return head_rows(in.k, t, head, shape.heads, shape.d_k); }
  ConstTileView v(Tokens t) const { return head_rows(in.v, t, head, shape.heads, shape.d_v); }
  ConstTileView g(Tokens t) const { return head_rows(in.g, t, head, shape.heads, shape.gate_width()); }
};

/// Calls body(first, last) on disjoint ranges that cover [0, count), one range a thread, and
/// returns when all are done. Thread t of n has [count t / n, count (t + 1) / n). The calling
/// thread takes range 0, and new threads take the others.
template <class Body>
void parallel_for(std::int64_t count, int threads, const Body& body) {
  const auto shares = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1));
  std::vector<std::jthread> helpers;
  for (std::int64_t t = 1; t < shares; ++t) {
    helpers.emplace_back([&body, count, shares, t] { body(count * t / shares, count * (t + 1) / shares); });
  }
  body(0, count / shares);
}

/// Calls body(head, place) for every head of the call, where `place` is its number in the call.
template <class Head, class Inputs, class Parameters, class Body>
void for_heads(const Inputs& in, const Parameters& p, const Body& body) {
  parallel_for(p.work.heads(p.shape), p.work.threads, [&](Index first, Index last) {
    for (Index h = first; h < last; ++h) body(Head{in, p.shape, p.work.first_head + h}, h);
  });
}

/// State number h [d_v, d_k] of `states`, or zero if `states` is null.
inline Tile state_or_zero(const float* states, Index h, const LayerShape& s) {
  if (states == nullptr) return Tile::Zero(s.d_v, s.d_k);
  return matrix_at(states, h, s.d_v, s.d_k);
}

/// Calls body(n) for all chunks in order, where body moves the state x over chunk n. The state is
/// zero where a packed document starts.
template <class Body>
void walk_chunks(const LayerShape& shape, Tile& x, const Body& body) {
  for (Index n = 0; n < shape.chunks(); ++n) {
    if (shape.starts_document(n)) x.setZero();
    body(n);
  }
}

/// Calls body(n) for all chunks from the last to the first, where body moves the gradient over
/// chunk n. The gradient becomes zero where a packed document starts.
template <class Body>
void walk_chunks_back(const LayerShape& shape, Tile& gradient, const Body& body) {
  for (Index n = shape.chunks() - 1; n >= 0; --n) {
    body(n);
    if (shape.starts_document(n)) gradient.setZero();
  }
}

/// Sets the gradients of all heads of a call. Each head has its own `Gradients`, which first keeps
/// the states before all chunks.
template <class Head, class Gradients, class Operands, class Parameters>
void set_gradients_of_heads(const Operands& x, const Parameters& p) {
  for_heads<Head>(x.in, p, [&](const Head& head, Index h) {
    Gradients gradients(x.out, head, x.d_o);
    gradients.keep_states(state_or_zero(x.before, h, p.shape));
    Tile gradient = state_or_zero(x.after, h, p.shape);
    walk_chunks_back(p.shape, gradient, [&](Index n) { gradients.set(gradient, n); });
  });
}

// The left product multiplies query rows with key rows that all come earlier, in square tiles whose
// scores stay in a core's cache.
//
//   for row tiles I, column tiles J:   a = s q_I k_J^T      o_I += a v_J
//   backward:   da = s d_o_I v_J^T      dv_J += a^T d_o_I     dq_I += da k_J     dk_J += da^T q_I
//
// q and k are already scaled by decays to a common reference; dq and dk are gradients of the scaled
// rows.
// Cost: 2 rows columns (d_k + d_v) flop forward, rows columns (6 d_k + 4 d_v) backward.

/// Calls body(first row, rows, first column, columns) for every tile of scores.
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

/// The gradients that a left product adds to, shaped as its q, k and v.
struct LeftProductTileGradients {
  TileRef dq, dk, dv;
};

/// Adds the gradients of add_left_product for the gradient d_o [rows, d_v] of the output.
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
