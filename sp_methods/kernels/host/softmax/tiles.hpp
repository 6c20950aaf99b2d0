// SPDX-License-Identifier: Apache-2.0
// Tiles of queries and keys that a causal mask leaves, and the exponentials within one tile.
//
//   for query tiles I:  for key tiles J up to the keys that the last query of I sees:  body(I, J)
//   P_ij = e^{Z_ij - shift_i} for the keys that query i sees, 0 for the others
//
// Cost: one exponential a visible pair.
// Source: Dao, "FlashAttention-2", 2023, section 3.1.
#pragma once

#include "sp_methods/kernels/host/softmax/block.hpp"
#include "sp_methods/kernels/host/tiles.hpp"

namespace baton {

inline constexpr Index softmax_tile_tokens = 128;

/// The key tiles that queries `rows` see, in order.
template <class Body>
void for_visible_tiles(const SoftmaxShape& shape, Tokens rows, const Body& body) {
  const Index visible = shape.visible(rows.first + rows.count - 1);
  for (Index j = 0; j < visible; j += softmax_tile_tokens) {
    body(Tokens{j, std::min(softmax_tile_tokens, visible - j)});
  }
}

/// The query tiles of a rank.
inline Index query_tiles(const SoftmaxShape& shape) {
  return (shape.q_tokens + softmax_tile_tokens - 1) / softmax_tile_tokens;
}
inline Tokens query_tile(const SoftmaxShape& shape, Index i) {
  const Index first = i * softmax_tile_tokens;
  return {first, std::min(softmax_tile_tokens, shape.q_tokens - first)};
}

/// Keys of a tile that local query i sees.
inline Index visible_columns(const SoftmaxShape& shape, Index i, Tokens columns) {
  return std::clamp<Index>(shape.visible(i) - columns.first, 0, columns.count);
}

/// Replaces the first n scores z of a row by e^{z - shift}, the others by zero.
inline void exponentiate(Eigen::Ref<Eigen::RowVectorXf> z, Index n, float shift) {
  z.head(n) = (z.head(n).array() - shift).max(-80.0F).exp();
  z.tail(z.size() - n).setZero();
}

}  // namespace baton
