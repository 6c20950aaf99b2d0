// SPDX-License-Identifier: Apache-2.0
// The gradients of a chunk's values and strengths, and the gradient of each token's score with its
// own key, from R, what the writes lacked, and Z, the gradient of what they lacked before they were
// solved for:
//
//   dv = B Z        dbeta = rowsum(Z (.) R)        own = s B rowsum(dO (.) R)
//
// Cost: every tile is read once, 16 bytes a thread and step.
#pragma once

#include "sp_methods/kernels/device/gla/gate_walk.cuh"

namespace baton {

/// A lane's sum of products of the bf16 numbers in 16 bytes.
__device__ inline float product_of_units(const uint4& x, const uint4& y) {
  const float2 sum = unpacked_pair(x.x) * unpacked_pair(y.x) + unpacked_pair(x.y) * unpacked_pair(y.y) +
                     unpacked_pair(x.z) * unpacked_pair(y.z) + unpacked_pair(x.w) * unpacked_pair(y.w);
  return sum.x + sum.y;
}

/// The bf16 numbers in 16 bytes, each times a factor.
__device__ inline uint4 scaled_unit(float factor, const uint4& x) {
  const auto scaled = [factor](std::uint32_t pair) {
    const float2 y = factor * unpacked_pair(pair);
    return packed_pair(y.x, y.y);
  };
  return {scaled(x.x), scaled(x.y), scaled(x.z), scaled(x.w)};
}

/// The tiles of a chunk's Z, R and dO.
template <class Tile>
struct ValueTiles {
  Tile z, missing, d_o;
};

/// Where the gradients of a chunk's values and strengths go.
struct ValueGradients {
  HeadRows<Bf16> dv, dbeta;
  float* own;  ///< [64] in shared memory.

  /// Writes all by `threads` threads, of which this is number `thread`, from tiles of rows of
  /// `width` values and strengths [64]. `scale` is s.
  template <int width, int threads, class Tile>
  __device__ void write(int thread, const ValueTiles<Tile>& from, const float* beta, float scale) const {
    constexpr int units = width / 8, apart = threads / units;
    const int first = thread / units, column = thread % units * 8;
#pragma unroll 4
    for (int i = 0; i < device_chunk / apart; ++i) {
      const int row = first + i * apart, at = Tile::offset(row, column);
      const auto unit = [at](const Tile& tile) { return *reinterpret_cast<const uint4*>(tile.memory + at); };
      const uint4 z = unit(from.z), missing = unit(from.missing);
      float2 sums{product_of_units(z, missing), product_of_units(unit(from.d_o), missing)};
#pragma unroll
      for (int over = units / 2; over > 0; over /= 2) sums = sums + shuffled(sums, lane() ^ over);
      if (column == 0) own[row] = scale * beta[row] * sums.y;
      if (row >= dv.count) continue;
      store_16(dv.row(row) + column, scaled_unit(beta[row], z));
      if (column == 0) *dbeta.row(row) = __float2bfloat16(sums.x);
    }
  }
};

}  // namespace baton
