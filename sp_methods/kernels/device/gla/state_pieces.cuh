// SPDX-License-Identifier: Apache-2.0
// The order in which kernels leave states in bf16 for the gradients: pieces of 16 rows and 16
// columns, in each what one lane of a matrix instruction takes from registers.
//
//   [row / 16][column / 16][lane][word]     lane 4 a + b: rows a and a + 8, columns 2 b and 2 b + 8
//   word 2 i + j: columns 2 b + 8 i and the next one of row a + 8 j
//
// So a warp reads and writes a piece as 512 bytes in a row, as a left operand or as sums.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16".
#pragma once

#include "sp_methods/kernels/device/tile/product.cuh"

namespace baton {

inline constexpr int piece_elements = 256;

/// The first element of the piece that holds (row, column), in a state of rows of `width` elements.
__host__ __device__ inline int piece_at(int width, int row, int column) {
  return (row / 16 * (width / 16) + column / 16) * piece_elements;
}
/// The element (row, column) of such a state, with an even column; the next column's follows.
__host__ __device__ inline int pair_in_pieces(int width, int row, int column) {
  const int from = row % 8 * 4 + column % 8 / 2, word = column % 16 / 8 * 2 + row % 16 / 8;
  return piece_at(width, row, column) + 8 * from + 2 * word;
}
/// The first element of this lane in the piece that holds (row, column).
__device__ inline int own_in_piece(int width, int row, int column) {
  return piece_at(width, row, column) + 8 * lane();
}

/// Writes a warp's sums as pieces of a state, with the first sum at (row, column) of it.
template <int width, int m_tiles, int n_tiles>
__device__ inline void store_pieces(Bf16* state, int row, int column, const Sums<m_tiles, n_tiles>& sums) {
#pragma unroll
  for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
    for (int n = 0; n < n_tiles; ++n) {
      const auto& left = sums.c[m][2 * n];
      const auto& right = sums.c[m][2 * n + 1];
      *reinterpret_cast<uint4*>(state + own_in_piece(width, row + 16 * m, column + 16 * n)) = {
          packed_pair(left[0], left[1]), packed_pair(left[2], left[3]), packed_pair(right[0], right[1]),
          packed_pair(right[2], right[3])};
    }
  }
}

/// A state of rows of `width` elements in shared memory, in pieces.
template <int width>
struct PieceTile {
  char* memory;

  /// Reads this lane's words of the piece that holds (row, column).
  __device__ void load(std::uint32_t (&words)[4], int row, int column) const {
    const uint4 x = *reinterpret_cast<const uint4*>(memory + 2 * own_in_piece(width, row, column));
    words[0] = x.x, words[1] = x.y, words[2] = x.z, words[3] = x.w;
  }
};

/// The right operand of a warp's product whose outer index is a state's row, from `outer` on.
template <int width>
struct PieceOperand {
  PieceTile<width> tile;
  int outer;

  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    std::uint32_t words[4];
    tile.load(words, outer + 16 * piece, 16 * step);
    x[0] = words[0], x[1] = words[2], x[2] = words[1], x[3] = words[3];
  }
};

/// Adds a lane's products of a piece with its sums there, in the left and in the right 8 columns,
/// to those of its two rows.
__device__ inline void add_products_of_piece(float2& rows, const std::uint32_t (&words)[4], const float* left,
                                             const float* right) {
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    const float2 x = unpacked_pair(words[word]);
    const float* const y = (word < 2 ? left : right) + 2 * (word % 2);
    (word % 2 == 0 ? rows.x : rows.y) += x.x * y[0] + x.y * y[1];
  }
}
/// The sums over the four lanes that have a row, of two rows.
__device__ inline float2 sum_over_row(float2 x) {
#pragma unroll
  for (int apart = 1; apart < 4; apart *= 2) {
    x.x += __shfl_xor_sync(0xffffffffU, x.x, apart);
    x.y += __shfl_xor_sync(0xffffffffU, x.y, apart);
  }
  return x;
}

/// own + decay more, for two elements of bf16.
__device__ inline std::uint32_t plus_decayed_pair(std::uint32_t own, float decay, std::uint32_t more) {
  const float2 a = unpacked_pair(own), b = unpacked_pair(more);
  return packed_pair(fmaf(decay, b.x, a.x), fmaf(decay, b.y, a.y));
}

}  // namespace baton
