// SPDX-License-Identifier: Apache-2.0
// The gradients of a chunk's values and strengths, from the gradient Z of what the writes lacked
// before they were solved for, and from what they lacked (R):
//
//   dv = B Z        dbeta = rowsum(Z (.) R)
//
// Cost: 16 bytes of both tiles a thread and step.
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

/// Rows of a chunk that value gradients are written to.
struct ValueGradients {
  HeadRows<Bf16> dv, dbeta;

  /// Writes both by `threads` threads, of which this is number `thread`, from tiles of rows of
  /// `width` values.
  template <int width, int threads, class Tile>
  __device__ void write(int thread, const Tile& z, const Tile& missing, const float* beta) const {
    constexpr int units = width / 8, apart = threads / units;
    const int first = thread / units, column = thread % units * 8;
#pragma unroll 4
    for (int i = 0; i < device_chunk / apart; ++i) {
      const int row = first + i * apart, at = Tile::offset(row, column);
      const uint4 unit = *reinterpret_cast<const uint4*>(z.memory + at);
      float sum = product_of_units(unit, *reinterpret_cast<const uint4*>(missing.memory + at));
#pragma unroll
      for (int over = units / 2; over > 0; over /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, over);
      if (row >= dv.count) continue;
      *reinterpret_cast<uint4*>(dv.row(row) + column) = scaled_unit(beta[row], unit);
      if (column == 0) *dbeta.row(row) = __float2bfloat16(sum);
    }
  }
};

}  // namespace baton
