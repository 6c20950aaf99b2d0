// SPDX-License-Identifier: Apache-2.0
// The kernels of Ring Attention share this: a block holds a tile of rows and walks over tiles of
// columns of the same head, each warp with 32 rows of its own; what a warp made of one product
// stays in registers for the next.
//
//   rows: queries or keys of one rank       columns: the other of the two
//   scores = rows x columns  ->  bf16 in registers  ->  left operand of the product over columns
//
// The fragments that mma.sync leaves are laid out as those that it takes: no shared memory between
// the two products.
// Source: Dao, "FlashAttention-2", 2023, section 3.3 (warps split rows and share columns).
#pragma once

#include <cstdint>

#include "sp_methods/kernels/device/tile/product.cuh"

namespace baton {

/// Number of rows of one warp.
inline constexpr int warp_rows = 32;
/// Number of columns of one tile.
inline constexpr int column_tile = 64;

/// Number of tiles of `size` that hold `count`.
__host__ __device__ inline int tiles_of(std::int64_t count, int size) {
  return static_cast<int>((count + size - 1) / size);
}

/// One head of a tensor [tokens, heads, width].
template <class Element>
struct HeadOf {
  Element* first;  ///< The head's row of token 0.
  int stride;      ///< Elements from one token to the next.
  std::int64_t tokens;

  __device__ HeadOf(Element* x, std::int64_t all_tokens, int heads, int head, int width)
      : first(x + static_cast<std::int64_t>(head) * width), stride(heads * width), tokens(all_tokens) {}
  __device__ Element* row(std::int64_t token) const { return first + token * stride; }
};

/// Starts copies of rows of one head into tiles by all threads of a block.
template <int width, int threads>
class RowLoader {
 public:
  __device__ explicit RowLoader(const HeadOf<const Bf16>& x)
      : tokens_(x.tokens),
        stride_(x.stride),
        row_(static_cast<int>(threadIdx.x) / units),
        from_(x.row(row_) + static_cast<int>(threadIdx.x) % units * 8),
        into_(Bf16Tile<width>::offset(row_, static_cast<int>(threadIdx.x) % units * 8)) {}

  /// Copies `count` rows from token `first` on; rows past the last token become zero.
  template <int count>
  __device__ void load(const Bf16Tile<width>& into, std::int64_t first) const {
    const int there = static_cast<int>(min(static_cast<std::int64_t>(count), tokens_ - first)) - row_;
    const Bf16* from = from_ + first * stride_;
    const std::uint32_t at = shared_address(into.memory) + into_;
#pragma unroll
    for (int pass = 0; pass < count / rows; ++pass) {
      copy_16_async((at ^ ((pass * rows / 8 & 7) << 4)) + pass * rows * Bf16Tile<width>::row_bytes,
                    from + pass * rows * stride_, pass * rows < there);
    }
  }

 private:
  static constexpr int units = width / 8;       // of 16 bytes in a row
  static constexpr int rows = threads / units;  // of one pass
  static_assert(rows % 8 == 0);

  std::int64_t tokens_;
  int stride_, row_;
  const Bf16* from_;
  int into_;
};

/// A warp's sums as bf16 in registers, as a left operand with the sums' rows as its outer index.
template <int m_tiles, int n_tiles>
class PackedSums {
 public:
  __device__ explicit PackedSums(const Sums<m_tiles, n_tiles>& sums) {
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
#pragma unroll
      for (int n = 0; n < 2 * n_tiles; ++n) {
        pairs_[m][n][0] = packed_pair(sums.c[m][n][0], sums.c[m][n][1]);
        pairs_[m][n][1] = packed_pair(sums.c[m][n][2], sums.c[m][n][3]);
      }
    }
  }
  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    x[0] = pairs_[piece][2 * step][0];
    x[1] = pairs_[piece][2 * step][1];
    x[2] = pairs_[piece][2 * step + 1][0];
    x[3] = pairs_[piece][2 * step + 1][1];
  }

 private:
  std::uint32_t pairs_[m_tiles][2 * n_tiles][2];
};

/// An operand whose summed index begins `first` steps later.
template <class Right>
struct FromStep {
  Right right;
  int first;

  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    right.load(x, piece, first + step);
  }
};

/// Calls f(row, column, pair of x, pair of y) for every pair of neighbouring elements of this lane.
template <int m_tiles, int n_tiles, class Function>
__device__ inline void for_each_of_both(Sums<m_tiles, n_tiles>& x, const Sums<m_tiles, n_tiles>& y,
                                        Function f) {
  const int row = lane() >> 2, column = 2 * (lane() & 3);
  x.for_each([&](int r, int c, float2& pair) {
    const auto& of_y = y.c[(r - row) / 16][(c - column) / 8];
    const int half = (r - row) / 8 % 2;
    f(r, c, pair, float2{of_y[2 * half], of_y[2 * half + 1]});
  });
}

/// Sets rows of one head of an fp32 tensor to scaled(row, column, sums), or adds to them. Row 0 of
/// the sums is token `first`.
template <int m_tiles, int n_tiles, class Function>
__device__ inline void write_rows(const HeadOf<float>& out, std::int64_t first, bool adds,
                                  Sums<m_tiles, n_tiles>& sums, Function scaled) {
  sums.for_each([&](int r, int c, float2& x) {
    if (first + r >= out.tokens) return;
    float2* at = reinterpret_cast<float2*>(out.row(first + r) + c);
    const float2 value = scaled(r, c, x);
    const float2 old = adds ? *at : float2{0.0F, 0.0F};
    *at = {old.x + value.x, old.y + value.y};
  });
}

/// Launches a kernel with dynamic shared memory.
template <class... Parameters, class... Arguments>
cudaError_t launch(cudaStream_t stream, dim3 grid, int threads, int shared_bytes,
                   void (*kernel)(Parameters...), const Arguments&... arguments) {
  const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (code != cudaSuccess) return code;
  kernel<<<grid, threads, shared_bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace baton
