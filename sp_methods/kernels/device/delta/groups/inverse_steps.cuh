// SPDX-License-Identifier: Apache-2.0
// The inverse of a chunk's triangular system under a delta rule, in fp32:
//
//   (I + G B) N~ = -G, G strictly lower, 64 x 64;   then (I + G B)^{-1} = I + N~ B
//   the 16 x 16 blocks on the diagonal by substitution, a thread a column
//   twice, for halves of 16 and of 32:  Y = G_10 + G_10 B_0 N~_00,   N~_10 = -(Y + N~_11 B_1 Y)
//
// Nothing is divided by beta. Y waits in the triangle of G above its diagonal.
// Cost: about 64^3 / 3 multiplications, five barriers.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484 (UT transform).
#pragma once

#include "sp_methods/kernels/device/delta/inverse.cuh"
#include "sp_methods/kernels/device/tile/warp_group.cuh"

namespace baton {

/// N~ of one chunk in the shared memory of a block of `threads` threads.
template <int threads>
struct ChunkInverse {
  using Pairs = PanelTile<device_chunk>;
  static constexpr int stride = device_chunk + 4;  ///< Of both matrices.

  ChunkMatrix scores;   ///< G, zero on and above the diagonal; overwritten above it.
  ChunkMatrix inverse;  ///< N~, set to zero on and above the diagonal.
  const float* beta;

  /// Sets N~. All threads call it, behind a barrier; it ends with one.
  __device__ void run() const {
    if (warp() < 4 && lane() < 16) invert_diagonal(16 * warp() + lane());
    __syncthreads();
    join<16>();
    join<32>();
  }

  /// Writes N~ in bf16 as a tile of panels.
  __device__ void write(char* into) const {
#pragma unroll
    for (int unit = static_cast<int>(threadIdx.x); unit < Pairs::bytes / 16; unit += threads) {
      const int row = unit / 8, column = ((unit ^ row) & 7) * 8;
      const float* const from = &inverse.at(row, column);
      const auto pair = [&](int c) {
        return packed_pair(column + c < row ? from[c] : 0.0F, column + c + 1 < row ? from[c + 1] : 0.0F);
      };
      reinterpret_cast<uint4*>(into)[unit] = {pair(0), pair(2), pair(4), pair(6)};
    }
  }

 private:
  /// Sets column `column` of N~ within its 16 x 16 block on the diagonal.
  __device__ void invert_diagonal(int column) const {
    const int first = column & ~15;
    float x[16];  // B N~
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float sum = scores.at(first + i, column);
#pragma unroll
      for (int m = 0; m < i; ++m) sum = fmaf(scores.at(first + i, first + m), x[m], sum);
      inverse.at(first + i, column) = -sum;
      x[i] = -beta[first + i] * sum;
    }
  }

  /// The sum over m < half of left[m] strengths[m] right(m) for four columns.
  template <int half>
  __device__ static float4 weighted_row(const float* left, const float* strengths, const float* right) {
    float4 sum{0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll
    for (int m = 0; m < half; m += 4) {
      const float4 x = *reinterpret_cast<const float4*>(left + m);
      const float4 b = *reinterpret_cast<const float4*>(strengths + m);
      add(sum, x.x * b.x, right + m * stride);
      add(sum, x.y * b.y, right + (m + 1) * stride);
      add(sum, x.z * b.z, right + (m + 2) * stride);
      add(sum, x.w * b.w, right + (m + 3) * stride);
    }
    return sum;
  }
  __device__ static void add(float4& sum, float weight, const float* row) {
    const float4 x = *reinterpret_cast<const float4*>(row);
    sum = {fmaf(weight, x.x, sum.x), fmaf(weight, x.y, sum.y), fmaf(weight, x.z, sum.z),
           fmaf(weight, x.w, sum.w)};
  }

  /// Joins neighbouring blocks of `half` rows on the diagonal into blocks of twice the size.
  template <int half>
  __device__ void join() const {
    constexpr int fours = half * half / 4, count = device_chunk / (2 * half) * fours;
    const auto each = [](auto f) {
      for (int four = static_cast<int>(threadIdx.x); four < count; four += threads) {
        const int first = four / fours * 2 * half, row = four / (half / 4) % half;
        f(first, row, four % (half / 4) * 4);
      }
      __syncthreads();
    };
    each([&](int first, int row, int column) {
      const float* const of_pairs = &scores.at(first + half + row, first);
      const float4 sum = weighted_row<half>(of_pairs, beta + first, &inverse.at(first, first + column));
      const float4 own = *reinterpret_cast<const float4*>(of_pairs + column);
      *reinterpret_cast<float4*>(&scores.at(first + row, first + half + column)) = {
          own.x + sum.x, own.y + sum.y, own.z + sum.z, own.w + sum.w};
      *reinterpret_cast<float4*>(&inverse.at(first + row, first + half + column)) = {};
    });
    each([&](int first, int row, int column) {
      const float* const products = &scores.at(first, first + half + column);
      const float4 sum = weighted_row<half>(&inverse.at(first + half + row, first + half),
                                            beta + first + half, products);
      const float4 own = *reinterpret_cast<const float4*>(products + row * stride);
      *reinterpret_cast<float4*>(&inverse.at(first + half + row, first + column)) = {
          -own.x - sum.x, -own.y - sum.y, -own.z - sum.z, -own.w - sum.w};
    });
  }
};

}  // namespace baton
