// SPDX-License-Identifier: Apache-2.0
// The tools that host kernels share: Eigen views of one head's rows in a [tokens, heads, width]
// tensor, and parallel loops.
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

}  // namespace baton
