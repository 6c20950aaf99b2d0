// SPDX-License-Identifier: Apache-2.0
// Eigen views of one head's rows in a [tokens, heads, width] tensor; the only header here that
// shows Eigen.
//
//   row t of head h starts at x + (t heads + h) width; the distance between rows is heads * width
//
// Cost: none, views copy nothing. Include it from .cpp files of this folder only: all users of an
// Eigen type must be compiled with the same vector instruction set.
#pragma once

#include <Eigen/Core>

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
inline Tokens chunk_tokens(const GlaShape& shape, Index n) {
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

/// One head of a layer: views of its tokens' rows.
struct GlaHead {
  const GlaInputs& in;
  const GlaShape& shape;
  Index head = 0;

  ConstTileView q(Tokens t) const { return head_rows(in.q, t, head, shape.heads, shape.d_k); }
  ConstTileView k(Tokens t) const { return head_rows(in.k, t, head, shape.heads, shape.d_k); }
  ConstTileView v(Tokens t) const { return head_rows(in.v, t, head, shape.heads, shape.d_v); }
  ConstTileView g(Tokens t) const { return head_rows(in.g, t, head, shape.heads, shape.gate_width()); }
};

}  // namespace baton
