// SPDX-License-Identifier: Apache-2.0
// Products of a tile of rows with the matrix of their head, by one block: on tensor cores with the
// accuracy of f32 for rows of 64 and 128 elements, by plain multiplications for others.
//
//   x = high + low, a = high + low, each part a TF32 of 11 bits, rounded
//   x a = high high + (high low + low high)          two sums, which are added at the end
//
// What is left out is 2^-22 of a product. Integers of 23 bits are the sum of their parts, so with
// matrices of 0, 1 and -1 results are exact while no partial sum passes 2^24. The matrix stays in
// registers from tile to tile of a head: a warp has 16 columns of it, both parts.
// Source of the split: arXiv 2203.03341.
#pragma once

#include <cuda_runtime_api.h>

#include "collectives/executors/cuda/matrices.hpp"

namespace baton {

/// A number as the sum of two tf32 numbers, which tensor cores can multiply.
struct Tf32Parts {
  unsigned high;
  unsigned low;
};

__device__ inline unsigned to_tf32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ inline Tf32Parts tf32_parts(float value) {
  const unsigned high = to_tf32(value);
  return {high, to_tf32(value - __uint_as_float(high))};
}

/// sum [16, 8] += a [16, 8] b [8, 8], in the layouts of PTX's mma.m16n8k8.
__device__ inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The products of a block with rows of `width` elements.
///
/// A warp makes 16 rows and 16 columns of a tile from one half of the elements that are summed. Two
/// warps share a result, so each quarter of a multiprocessor has four warps with work. Of 16
/// elements that are summed lane t of four takes elements 4t to 4t+3, two a multiplication, so it
/// loads them at once. The columns of its two results are 4t to 4t+3 likewise.
template <unsigned width>
class Products {
 public:
  /// Elements from one row of a tile in shared memory to the next. 16 elements of padding spread
  /// the loads of a quarter of a warp over all banks.
  static constexpr unsigned stride = width + 16;

  __device__ explicit Products(const Matrices& by) : by_(by) {}

  /// Loads the matrix of the tile that begins with row `at`, unless it is that of the tile before.
  __device__ void prepare(unsigned at) {
    const unsigned head = (by_.before + at) / by_.share;
    if (head != head_) load(head);
  }

  /// y += the rows x times their matrix, tiles in shared memory, with room for another tile. `at`
  /// is the number of the tile's first row in the slice. All threads of the block call it, between
  /// barriers.
  __device__ void multiply(float* y, const float* x, float* second_half, unsigned at, unsigned /*rows*/) {
    prepare(at);
    const unsigned row = warp_row() + lane() / 4, place = row * stride + warp_column() + quad() * 4;
    float sums[2][4] = {};
    add_products(sums, x + row * stride + half() * width / 2 + quad() * 4);
    const auto at_row = [&](float* tile, int lower) -> float4& {
      return *reinterpret_cast<float4*>(tile + place + lower * 8 * stride);
    };
    const auto own = [&](int lower) {
      const int i = lower * 2;
      return float4{sums[0][i], sums[0][i + 1], sums[1][i], sums[1][i + 1]};
    };
    if (half() == 1) {
      at_row(second_half, 0) = own(0), at_row(second_half, 1) = own(1);
      return meet_partner();
    }
    meet_partner();
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const float4 mine = own(lower), other = at_row(second_half, lower);
      float4& into = at_row(y, lower);
      into.x += mine.x + other.x, into.y += mine.y + other.y;
      into.z += mine.z + other.z, into.w += mine.w + other.w;
    }
  }

 private:
  static constexpr unsigned columns = width / 16;  // of warps
  static constexpr unsigned groups = width / 32;   // of elements that a warp sums
  static constexpr unsigned no_head = ~0U;

  __device__ static unsigned lane() { return threadIdx.x % 32; }
  __device__ static unsigned quad() { return lane() % 4; }
  __device__ static unsigned warp_column() { return threadIdx.x / 32 % columns * 16; }
  __device__ static unsigned half() { return threadIdx.x / (32 * columns) % 2; }
  __device__ static unsigned warp_row() { return threadIdx.x / (64 * columns) * 16; }

  /// A barrier of the two warps that share a result; 0 is the barrier of the block.
  __device__ static void meet_partner() {
    const unsigned result = 1 + warp_row() / 16 * columns + warp_column() / 16;
    asm volatile("bar.sync %0, 64;" ::"r"(result) : "memory");
  }

  /// Adds the products of the rows at `x` and eight rows below, over half of the elements.
  __device__ void add_products(float (&sums)[2][4], const float* x) const {
    float small_sums[2][2][4] = {};
#pragma unroll
    for (unsigned group = 0; group < groups; ++group) {
      const float4 upper = *reinterpret_cast<const float4*>(x + group * 16),
                   lower = *reinterpret_cast<const float4*>(x + group * 16 + 8 * stride);
      const float four[2][4] = {{upper.x, lower.x, upper.y, lower.y}, {upper.z, lower.z, upper.w, lower.w}};
#pragma unroll
      for (unsigned step = 0; step < 2; ++step) {
        unsigned high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Tf32Parts parts = tf32_parts(four[step][i]);
          high[i] = parts.high, low[i] = parts.low;
        }
#pragma unroll
        for (unsigned j = 0; j < 2; ++j) {
          const Tf32Parts b0 = matrix_[group][j][2 * step], b1 = matrix_[group][j][2 * step + 1];
          multiply_add(sums[j], high, b0.high, b1.high);
          multiply_add(small_sums[j][0], high, b0.low, b1.low);
          multiply_add(small_sums[j][1], low, b0.high, b1.high);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[j][i] += small_sums[j][0][i] + small_sums[j][1][i];
  }

  __device__ void load(unsigned head) {
    head_ = head;
    const float* const matrix = by_.first + std::size_t{head} * width * width;
    const unsigned n = lane() / 4;
#pragma unroll
    for (unsigned group = 0; group < groups; ++group)
#pragma unroll
      for (unsigned j = 0; j < 2; ++j) {
        const unsigned column = warp_column() + 4 * (n / 2) + 2 * j + n % 2,
                       first = half() * width / 2 + group * 16 + quad() * 4;
        float v[4];
        if (by_.transposed) {
#pragma unroll
          for (unsigned i = 0; i < 4; ++i) v[i] = __ldcg(matrix + (first + i) * width + column);
        } else {
          const float4 four = __ldcg(reinterpret_cast<const float4*>(matrix + column * width + first));
          v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
        }
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) matrix_[group][j][i] = tf32_parts(v[i]);
      }
  }

  const Matrices& by_;
  unsigned head_ = no_head;
  Tf32Parts matrix_[groups][2][4];
};

/// The products of a block with rows of any length, whose tiles may lie in several heads.
template <>
class Products<0> {
 public:
  __device__ explicit Products(const Matrices& by) : by_(by) {}

  __device__ void prepare(unsigned /*at*/) const {}

  __device__ void multiply(float* y, const float* x, float* /*room*/, unsigned at, unsigned rows) const {
    const unsigned d = by_.row;
    for (unsigned i = threadIdx.x; i < rows * d; i += blockDim.x) {
      const unsigned row = i / d, column = i % d;
      const float* const matrix = by_.first + std::size_t{(by_.before + at + row) / by_.share} * d * d;
      float sum = y[i];
      for (unsigned b = 0; b < d; ++b)
        sum = fmaf(x[row * d + b], __ldcg(matrix + (by_.transposed ? b * d + column : column * d + b)), sum);
      y[i] = sum;
    }
  }

 private:
  const Matrices& by_;
};

}  // namespace baton
