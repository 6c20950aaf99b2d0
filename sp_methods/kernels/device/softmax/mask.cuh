// SPDX-License-Identifier: Apache-2.0
// The causal mask between two ranks' tokens: positions.hpp on the device.
#pragma once

#include <cstdint>

#include "sp_methods/kernels/ring_contracts.hpp"

namespace baton {

/// Sizes and positions of a block. A query sees the first keys of the block, and at least as many
/// as the query before it.
struct SoftmaxMask {
  Positions q, k;
  int q_tokens, k_tokens, heads;
  float scale;

  explicit SoftmaxMask(const SoftmaxShape& shape)
      : q(shape.q_positions),
        k(shape.k_positions),
        q_tokens(static_cast<int>(shape.q_tokens)),
        k_tokens(static_cast<int>(shape.k_tokens)),
        heads(static_cast<int>(shape.heads)),
        scale(shape.scale()) {}

  /// Keys that query i sees; none past the last query.
  __device__ int visible(int i) const {
    if (i >= q_tokens) return 0;
    const std::int64_t position = i < q.split ? q.first + i : q.second + (i - q.split);
    const std::int64_t low = min(max(position - k.first + 1, std::int64_t{0}), k.split);
    const std::int64_t high = min(max(position - k.second + 1, std::int64_t{0}), k_tokens - k.split);
    return static_cast<int>(low + high);
  }
  /// Keys that at least one of `count` queries from `first` on sees.
  __device__ int visible_to_any(int first, int count) const {
    return visible(min(first + count, q_tokens) - 1);
  }
  /// Keys that all of these queries see.
  __device__ int visible_to_all(int first, int count) const { return visible(min(first, q_tokens - 1)); }

  /// The first query that sees key j; q_tokens if none does.
  __device__ int first_query(int j) const {
    int low = 0, high = q_tokens;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (visible(middle) > j) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

}  // namespace baton
