// SPDX-License-Identifier: Apache-2.0
// Where a rank's tokens stand in the whole sequence, for causal masks under contiguous and zigzag layouts.
//
//   contiguous, rank p of P, L tokens:   p L .. p L + L - 1
//   zigzag:                              halves p and 2P - 1 - p of 2P equal pieces of L / 2 tokens
//
// Cost: a value of three numbers, no memory a token.
// Source: zhuzilin/ring-flash-attention, zigzag_ring_flash_attn.py (the zigzag layout).
#pragma once

#include <algorithm>
#include <cstdint>

namespace baton {

/// Ascending global positions of one rank's tokens: `split` of them from `first` on, the rest from `second`.
struct Positions {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t split = 0;

  /// The global position of local token t.
  std::int64_t at(std::int64_t t) const { return t < split ? first + t : second + (t - split); }

  /// How many of these `tokens` tokens stand at or before a global position; they are the first ones.
  std::int64_t visible(std::int64_t position, std::int64_t tokens) const {
    const auto low = std::clamp<std::int64_t>(position - first + 1, 0, split);
    const auto high = std::clamp<std::int64_t>(position - second + 1, 0, tokens - split);
    return low + high;
  }
};

/// Positions of a rank whose tokens are one run of the sequence; tokens a rank.
inline Positions contiguous_positions(std::int64_t rank, std::int64_t tokens) {
  return {rank * tokens, 0, tokens};
}

/// Positions of a rank that holds one piece from the front and its mirror from the back; tokens a rank, even.
inline Positions zigzag_positions(std::int64_t rank, std::int64_t ranks, std::int64_t tokens) {
  return {rank * tokens / 2, (2 * ranks - 1 - rank) * tokens / 2, tokens / 2};
}

}  // namespace baton
