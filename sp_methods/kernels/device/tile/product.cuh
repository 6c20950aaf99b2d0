// SPDX-License-Identifier: Apache-2.0
// Products of bf16 tiles in shared memory on the matrix units, fp32 sums in registers.
//
//   C [m, n] += sum over x of L [m, x] R [x, n],   m, n: the outer indices of the operands
//
// A warp holds C in fragments of 16 x 8: lane 4 a + b has rows a, a + 8 and columns 2 b, 2 b + 1.
// Either operand may lie in its tile with its outer or its summed index along the rows: ldmatrix
// turns it where needed. Instructions: mma.sync m16n8k16, ldmatrix (PTX ISA, "Matrix Fragments for
// mma.m16n8k16").
#pragma once

#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

enum class Side { left, right };
/// The index of a product that runs along the rows of an operand's tile.
enum class RowsAre { outer, summed };

__device__ inline int lane() { return static_cast<int>(threadIdx.x) & 31; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) >> 5; }
/// The warp's row in the block's 4 by 4 arrangement of warps.
__device__ inline int warp_row() { return warp() >> 2; }
/// The warp's column in the block's 4 by 4 arrangement of warps.
__device__ inline int warp_column() { return warp() & 3; }

template <bool transposed>
__device__ inline void load_matrices(std::uint32_t (&x)[4], std::uint32_t at) {
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
  }
}

__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// One operand of a warp's product: 16 x 16 pieces of a tile from `outer` on, a multiple of the
/// warp's extent in the outer index.
template <Side side, RowsAre rows_are, int width>
class Operand {
 public:
  __device__ Operand(Bf16Tile<width> tile, int outer) {
    constexpr bool halves_by_16 = (side == Side::left) == (rows_are == RowsAre::outer);
    const int low = (lane() >> 3) & 1, high = lane() >> 4;
    const int row = (lane() & 7) + 8 * (halves_by_16 ? low : high);
    const int column = 8 * (halves_by_16 ? high : low);
    const int place =
        rows_are == RowsAre::outer ? tile.offset(outer + row, column) : tile.offset(row, outer + column);
    address_ = shared_address(tile.memory) + place;
  }

  /// Loads piece `piece` of the outer index at step `step` of the summed index.
  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    const int down = rows_are == RowsAre::outer ? piece : step;
    const int right = rows_are == RowsAre::outer ? step : piece;
    const std::uint32_t unit = ((2 * right) ^ ((2 * down) & 7)) << 4;
    load_matrices<rows_are == RowsAre::summed>(x, (address_ ^ unit) + down * 16 * Bf16Tile<width>::row_bytes);
  }

 private:
  std::uint32_t address_;
};

template <RowsAre rows_are, int width>
__device__ inline auto left_operand(Bf16Tile<width> tile, int outer) {
  return Operand<Side::left, rows_are, width>(tile, outer);
}
template <RowsAre rows_are, int width>
__device__ inline auto right_operand(Bf16Tile<width> tile, int outer) {
  return Operand<Side::right, rows_are, width>(tile, outer);
}

/// A warp's sums: 16 m_tiles rows and 16 n_tiles columns.
template <int m_tiles, int n_tiles>
struct Sums {
  float c[m_tiles][2 * n_tiles][4];

  __device__ void clear() {
    for_each([](int, int, float2& x) { x = {0.0F, 0.0F}; });
  }
  /// Calls f(row, column, pair) for every pair of neighbouring elements of this lane, with rows and
  /// columns from 0.
  template <class Function>
  __device__ void for_each(Function f) {
    const int row = lane() >> 2, column = 2 * (lane() & 3);
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int n = 0; n < 2 * n_tiles; ++n) {
          float2 pair{c[m][n][2 * half], c[m][n][2 * half + 1]};
          f(16 * m + 8 * half + row, 8 * n + column, pair);
          c[m][n][2 * half] = pair.x;
          c[m][n][2 * half + 1] = pair.y;
        }
      }
    }
  }
  /// Multiplies row i by factors[i].
  __device__ void scale_rows(const float* factors) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = factors[16 * m + 8 * half + (lane() >> 2)];
#pragma unroll
        for (int n = 0; n < 2 * n_tiles; ++n) {
          c[m][n][2 * half] *= factor;
          c[m][n][2 * half + 1] *= factor;
        }
      }
    }
  }
};

/// Two neighbouring sums of a lane: in the rows of the warp's half `half`, and the n-th eight
/// columns.
template <int n_tiles>
__device__ inline float2 pair_of(const Sums<1, n_tiles>& sums, int half, int n) {
  return {sums.c[0][n][2 * half], sums.c[0][n][2 * half + 1]};
}
template <int n_tiles>
__device__ inline void set_pair_of(Sums<1, n_tiles>& sums, int half, int n, float2 x) {
  sums.c[0][n][2 * half] = x.x;
  sums.c[0][n][2 * half + 1] = x.y;
}

/// Adds the product over the 16 summed indices of one step.
template <int m_tiles, int n_tiles, class Left, class Right>
__device__ inline void add_step(Sums<m_tiles, n_tiles>& sums, const Left& left, const Right& right,
                                int step) {
  std::uint32_t a[m_tiles][4];
#pragma unroll
  for (int m = 0; m < m_tiles; ++m) left.load(a[m], m, step);
#pragma unroll
  for (int n = 0; n < n_tiles; ++n) {
    std::uint32_t b[4];
    right.load(b, n, step);
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
      multiply_add(sums.c[m][2 * n], a[m], b[0], b[1]);
      multiply_add(sums.c[m][2 * n + 1], a[m], b[2], b[3]);
    }
  }
}

/// Adds a product of `steps` steps, of which only [first, last) are computed.
template <int steps, int m_tiles, int n_tiles, class Left, class Right>
__device__ inline void add_product(Sums<m_tiles, n_tiles>& sums, const Left& left, const Right& right,
                                   int first = 0, int last = steps) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    if (step >= first && step < last) add_step(sums, left, right, step);
  }
}

/// One of two products that add_products adds by turns.
template <int steps_, int m_tiles, int n_tiles, class Left, class Right>
struct ProductSteps {
  static constexpr int steps = steps_;
  Sums<m_tiles, n_tiles>& sums;
  Left left;
  Right right;

  __device__ void add(int step) const { add_step(sums, left, right, step); }
};
template <int steps, int m_tiles, int n_tiles, class Left, class Right>
__device__ inline ProductSteps<steps, m_tiles, n_tiles, Left, Right> product(Sums<m_tiles, n_tiles>& sums,
                                                                             const Left& left,
                                                                             const Right& right) {
  return {sums, left, right};
}

/// Adds one product.
template <class Only>
__device__ inline void add_products(const Only& only) {
#pragma unroll
  for (int step = 0; step < Only::steps; ++step) only.add(step);
}

/// Adds two products by turns: while one waits for its operands, the other multiplies.
template <class First, class Second>
__device__ inline void add_products(const First& first, const Second& second) {
#pragma unroll
  for (int step = 0; step < First::steps || step < Second::steps; ++step) {
    if (step < First::steps) first.add(step);
    if (step < Second::steps) second.add(step);
  }
}

/// Adds two products with one right operand, which is loaded once, over steps [from, to).
template <int steps, int n_tiles, class First, class Second, class Right>
__device__ inline void add_products_of(const Right& right, Sums<1, n_tiles>& first, const First& first_left,
                                       Sums<1, n_tiles>& second, const Second& second_left, int from = 0,
                                       int to = steps) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    if (step < from || step >= to) continue;
    std::uint32_t a[2][4];
    first_left.load(a[0], 0, step);
    second_left.load(a[1], 0, step);
#pragma unroll
    for (int n = 0; n < n_tiles; ++n) {
      std::uint32_t b[4];
      right.load(b, n, step);
      multiply_add(first.c[0][2 * n], a[0], b[0], b[1]);
      multiply_add(second.c[0][2 * n], a[1], b[0], b[1]);
      multiply_add(first.c[0][2 * n + 1], a[0], b[2], b[3]);
      multiply_add(second.c[0][2 * n + 1], a[1], b[2], b[3]);
    }
  }
}

/// Writes one row of 16 sums as bf16, from this lane's pairs of the left and of the right 8
/// columns. Neighbouring lanes swap a pair, so that each writes 8 bytes and four of them fill a
/// 32-byte sector.
__device__ inline void store_row_of_16(Bf16* row, float2 left, float2 right, bool there) {
  const bool odd = (lane() & 1) != 0;
  const std::uint32_t own_left = packed_pair(left.x, left.y), own_right = packed_pair(right.x, right.y);
  const std::uint32_t other = __shfl_xor_sync(0xffffffffU, odd ? own_left : own_right, 1);
  const uint2 four = odd ? uint2{other, own_right} : uint2{own_left, other};
  if (there) *reinterpret_cast<uint2*>(row + (odd ? 8 : 0) + 2 * (lane() & 2)) = four;
}

/// Writes sums as bf16 rows of global memory. `rows.first` is the address of the first sum.
template <int m_tiles, int n_tiles>
__device__ inline void store_sums(const HeadRows<Bf16>& rows, const Sums<m_tiles, n_tiles>& sums) {
#pragma unroll
  for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * m + 8 * half + (lane() >> 2);
#pragma unroll
      for (int n = 0; n < n_tiles; ++n) {
        const auto& left = sums.c[m][2 * n];
        const auto& right = sums.c[m][2 * n + 1];
        store_row_of_16(rows.row(row) + 16 * n, {left[2 * half], left[2 * half + 1]},
                        {right[2 * half], right[2 * half + 1]}, row < rows.count);
      }
    }
  }
}

/// Offsets of a warp's sums in a tile of bf16 or fp32 with the first sum at (row, column),
/// multiples of the warp's extent in rows and columns.
template <class Tile>
class SumsPlace {
 public:
  __device__ SumsPlace(int row, int column)
      : start_(Tile::offset(row + (lane() >> 2), column + 2 * (lane() & 3))) {}

  __device__ int at(int m, int half, int n) const {
    const int moved = Tile::swaps_rows_8_apart ? n ^ ((2 * m + half) & 7) : n;
    return (start_ ^ (moved * Tile::unit_bytes)) + (16 * m + 8 * half) * Tile::row_bytes;
  }

 private:
  int start_;
};

/// Stores sums in a tile, with the first sum at (row, column).
template <class Tile, int m_tiles, int n_tiles>
__device__ inline void put_sums(const Tile& tile, int row, int column, const Sums<m_tiles, n_tiles>& sums) {
  const SumsPlace<Tile> place(row, column);
#pragma unroll
  for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < 2 * n_tiles; ++n) {
        tile.set_pair(place.at(m, half, n), {sums.c[m][n][2 * half], sums.c[m][n][2 * half + 1]});
      }
    }
  }
}

}  // namespace baton
