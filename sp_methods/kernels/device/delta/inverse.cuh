// SPDX-License-Identifier: Apache-2.0
// The inverse of a chunk's triangular system, in fp32: N = (I + L)^{-1}, L strictly lower, 64 x 64.
//
//   the 16 x 16 blocks on the diagonal by substitution, a thread a column
//   twice, for halves of 32 and of 64:   N_10 = -N_11 (L_10 N_00)
//
// The products L_10 N_00 wait in the triangle of L above its diagonal, which nothing else uses.
// Cost: about 64^3 / 3 multiplications, five barriers.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484 (UT transform).
#pragma once

#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

/// A 64 x 64 matrix of floats in rows that are `stride` floats apart.
struct ChunkMatrix {
  static constexpr int bytes(int stride) { return 4 * device_chunk * stride; }

  float* memory;
  int stride;

  __device__ float& at(int row, int column) const { return memory[row * stride + column]; }
};

/// Sets a column of the inverse of a 16 x 16 block on the diagonal; threads 0 .. 63 take part.
__device__ inline void invert_diagonal_column(const ChunkMatrix& inverse, const ChunkMatrix& lower) {
  const int first = static_cast<int>(threadIdx.x) & ~15, column = static_cast<int>(threadIdx.x) & 15;
  float x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    float sum = i == column ? 1.0F : 0.0F;
#pragma unroll
    for (int m = 0; m < i; ++m) sum = fmaf(-lower.at(first + i, first + m), x[m], sum);
    x[i] = i < column ? 0.0F : sum;
    inverse.at(first + i, first + column) = x[i];
  }
}

/// The sum over m < half of x[m] rows(m) for four columns; rows are `stride` floats apart.
template <int half>
__device__ inline float4 row_times(const float* x, const float* rows, int stride) {
  float4 sum{0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll 8
  for (int m = 0; m < half; ++m) {
    const float4 row = *reinterpret_cast<const float4*>(rows + m * stride);
    sum.x = fmaf(x[m], row.x, sum.x);
    sum.y = fmaf(x[m], row.y, sum.y);
    sum.z = fmaf(x[m], row.z, sum.z);
    sum.w = fmaf(x[m], row.w, sum.w);
  }
  return sum;
}

/// Joins the inverses of two blocks of `half` rows on the diagonal into one of twice the size. All
/// threads call it, and some of them compute one row and four columns each.
template <int half>
__device__ inline void join_halves(const ChunkMatrix& inverse, const ChunkMatrix& lower) {
  const int four = static_cast<int>(threadIdx.x), first = four / (half * half / 4) * 2 * half;
  const int row = four / (half / 4) % half, column = 4 * (four % (half / 4));
  const bool takes_part = four < device_chunk * half / 8;
  if (takes_part) {
    *reinterpret_cast<float4*>(&lower.at(first + row, first + half + column)) = row_times<half>(
        &lower.at(first + half + row, first), &inverse.at(first, first + column), inverse.stride);
    *reinterpret_cast<float4*>(&inverse.at(first + row, first + half + column)) = {};
  }
  __syncthreads();
  if (takes_part) {
    const float4 sum = row_times<half>(&inverse.at(first + half + row, first + half),
                                       &lower.at(first, first + half + column), lower.stride);
    *reinterpret_cast<float4*>(&inverse.at(first + half + row, first + column)) = {-sum.x, -sum.y, -sum.z,
                                                                                   -sum.w};
  }
  __syncthreads();
}

/// Sets `inverse` to (I + lower)^{-1}, zero above its diagonal, and overwrites `lower` above its
/// diagonal. All threads call it, behind a barrier and before one.
__device__ inline void invert(const ChunkMatrix& inverse, const ChunkMatrix& lower) {
  if (threadIdx.x < device_chunk) invert_diagonal_column(inverse, lower);
  __syncthreads();
  join_halves<16>(inverse, lower);
  join_halves<32>(inverse, lower);
}

}  // namespace baton
