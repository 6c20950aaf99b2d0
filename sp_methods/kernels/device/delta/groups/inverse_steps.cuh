// SPDX-License-Identifier: Apache-2.0
// The inverse of a chunk's triangular system under a delta rule, in fp32:
//
//   (I + G B) N~ = -G, G strictly lower, 64 x 64;   then (I + G B)^{-1} = I + N~ B
//   the 16 x 16 blocks on the diagonal by substitution, a thread a column
//   twice, for halves of 16 and of 32:  Y = G_10 + G_10 B_0 N~_00,   N~_10 = -(Y + N~_11 B_1 Y)
//
// Nothing is divided by beta. Y waits in the triangle of G above its diagonal. Operands of joins
// are rounded to 11 bits (tf32), a quarter of the rounding of N~ to bf16.
// Cost: about 64^3 / 3 multiplications, five barriers.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484 (UT transform).
#pragma once

#include "sp_methods/kernels/device/gla/gate_walk.cuh"
#include "sp_methods/kernels/device/tile/warp_group.cuh"

namespace baton {

/// A 64 x 64 matrix of floats in rows that are `stride` floats apart.
struct ChunkMatrix {
  static constexpr int bytes(int stride) { return 4 * device_chunk * stride; }

  float* memory;
  int stride;

  __device__ float& at(int row, int column) const { return memory[row * stride + column]; }
};

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

  /// A warp's sums of 16 rows and 8 columns: those of lane 4 a + b are in rows a and a + 8, columns
  /// 2 b and the next one.
  struct Piece {
    float c[4];

    __device__ static int row(int half) { return (lane() >> 2) + 8 * half; }
    __device__ static int column() { return 2 * (lane() & 3); }
    __device__ float2 pair(int half) const { return {c[2 * half], c[2 * half + 1]}; }
  };

  /// The number nearest to x with the 11 bits that a matrix unit takes of an fp32 operand (tf32).
  __device__ static std::uint32_t narrow(float x) {
    std::uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
  }

  /// The product over `half` indices of left rows and right columns, with strengths on the diagonal
  /// between them.
  template <int half>
  __device__ static Piece weighted_product(const float* left, const float* strengths, const float* right) {
    Piece sum{};
    const int outer = lane() >> 2, inner = lane() & 3;
#pragma unroll
    for (int m = inner; m < half; m += 8) {
      std::uint32_t a[4], b[2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = m + 4 * (i / 2);
        a[i] = narrow(strengths[at] * left[(outer + 8 * (i % 2)) * stride + at]);
      }
      b[0] = narrow(right[m * stride + outer]), b[1] = narrow(right[(m + 4) * stride + outer]);
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%0,%1,%2,%3};"
          : "+f"(sum.c[0]), "+f"(sum.c[1]), "+f"(sum.c[2]), "+f"(sum.c[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    return sum;
  }

  /// Joins neighbouring blocks of `half` rows on the diagonal into blocks of twice the size.
  template <int half>
  __device__ void join() const {
    constexpr int columns = half / 8, pieces = half / 16 * columns,
                  count = device_chunk / (2 * half) * pieces;
    const auto each = [](auto f) {
      for (int piece = warp(); piece < count; piece += threads / 32)
        f(piece / pieces * 2 * half, piece / columns % (half / 16) * 16, piece % columns * 8);
      __syncthreads();
    };
    each([&](int first, int row, int column) {
      const float* const of_pairs = &scores.at(first + half + row, first);
      const Piece sum = weighted_product<half>(of_pairs, beta + first, &inverse.at(first, first + column));
      for (int i = 0; i < 2; ++i) {
        const float2 own = pair_at(of_pairs + column, i);
        pair_at(&scores.at(first + row, first + half + column), i) = own + sum.pair(i);
        pair_at(&inverse.at(first + row, first + half + column), i) = {0.0F, 0.0F};
      }
    });
    each([&](int first, int row, int column) {
      const float* const products = &scores.at(first, first + half + column);
      const Piece sum = weighted_product<half>(&inverse.at(first + half + row, first + half),
                                               beta + first + half, products);
      for (int i = 0; i < 2; ++i) {
        const float2 own = pair_at(products + row * stride, i);
        pair_at(&inverse.at(first + half + row, first + column), i) = -1.0F * (own + sum.pair(i));
      }
    });
  }
  /// This lane's pair of a piece whose first number is at `first`.
  template <class Number>
  __device__ static auto& pair_at(Number* first, int half) {
    using Pair = std::conditional_t<std::is_const_v<Number>, const float2, float2>;
    return *reinterpret_cast<Pair*>(first + Piece::row(half) * stride + Piece::column());
  }
};

}  // namespace baton
