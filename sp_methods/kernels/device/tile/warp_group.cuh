// SPDX-License-Identifier: Apache-2.0
// Products on the matrix units by groups of four warps (wgmma): tiles as they read them, the
// instructions, and the barriers between groups.
//
//   C [64, n] += L [64, x] R [x, n],   C in registers, R in shared memory, L in either
//
// A tile consists of panels of 64 columns, rows of 128 bytes; row r keeps its 16-byte unit u at
// place u xor (r mod 8). Lane 4 a + b of warp w has rows 16 w + a and 8 below, columns 8 i + 2 b
// and the next one.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" and "Matrix descriptor".
#pragma once

#include "sp_methods/kernels/device/tile/product.cuh"

namespace baton {

inline constexpr int group_threads = 128;
/// A number that all lanes of a warp have. The shuffle tells the compiler that they agree, so that
/// it keeps what follows from it in registers of the warp.
__device__ inline int same_in_warp(int x) { return __shfl_sync(0xffffffffU, x, 0); }
/// The number of this warp's group; all lanes of a warp must call it.
__device__ inline int group() { return same_in_warp(static_cast<int>(threadIdx.x) / group_threads); }
__device__ inline int group_thread() { return static_cast<int>(threadIdx.x) % group_threads; }

/// Tile with bf16 rows of `width` elements in shared memory, aligned to 1024 bytes.
template <int width, int rows = device_chunk>
struct PanelTile {
  static constexpr int row_bytes = 128, unit_bytes = 16, panel_bytes = rows * row_bytes;
  static constexpr int bytes = width / 64 * panel_bytes;
  static constexpr bool swaps_rows_8_apart = false;

  char* memory;

  __device__ static int offset(int row, int column) {
    return (column >> 6) * panel_bytes + row * row_bytes + ((((column >> 3) ^ row) & 7) << 4) +
           (column & 7) * 2;
  }
  __device__ float2 pair(int at) const { return load_pair(memory + at); }
  __device__ void set_pair(int at, float2 x) const { store_pair(memory + at, x); }
  __device__ float at(int row, int column) const {
    return __bfloat162float(*reinterpret_cast<const Bf16*>(memory + offset(row, column)));
  }
  __device__ void set(int row, int column, float x) const {
    *reinterpret_cast<Bf16*>(memory + offset(row, column)) = __float2bfloat16(x);
  }
};

/// Starts copies of chunks' rows into tiles by one group, or by all groups of `threads` threads.
template <int width, int threads = group_threads>
class PanelLoader {
 public:
  /// Makes a loader of the rows of head `head` of tensors [tokens, heads, width].
  __device__ PanelLoader(std::int64_t tokens, int heads, int head)
      : tokens_(tokens),
        stride_(heads * width),
        from_(static_cast<std::int64_t>(row()) * stride_ + head * width + column()),
        into_(PanelTile<width>::offset(row(), column())) {}

  /// Copies a chunk of x [tokens, heads, width]; rows past the last token become zero.
  __device__ void load(const PanelTile<width>& into, const Bf16* x, int chunk) const {
    const std::int64_t first = static_cast<std::int64_t>(chunk) * device_chunk;
    const int count = static_cast<int>(min(static_cast<std::int64_t>(device_chunk), tokens_ - first)) - row();
    const Bf16* from = x + from_ + first * stride_;
    const std::uint32_t at = shared_address(into.memory) + into_;
#pragma unroll
    for (int down = 0; down < device_chunk; down += rows)
      copy_16_async(at + down * PanelTile<width>::row_bytes, from + down * stride_, down < count);
  }

 private:
  static constexpr int units = width / 8, rows = threads / units;  // rows of one pass
  static_assert(rows % 8 == 0, "the place of a unit is the same in every pass");
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % threads; }
  __device__ static int row() { return thread() / units; }
  __device__ static int column() { return thread() % units * 8; }

  std::int64_t tokens_;
  int stride_;
  std::int64_t from_;
  int into_;
};

/// Starts the copy of dense rows by one group, or by all groups of `threads` threads.
template <int width, int rows, int threads = group_threads>
__device__ inline void copy_dense(const PanelTile<width, rows>& into, const Bf16* from) {
  constexpr int units = width / 8, apart = threads / units;
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int row = thread / units, column = thread % units * 8;
  const std::uint32_t at = shared_address(into.memory) + PanelTile<width, rows>::offset(row, column);
  const Bf16* const first = from + row * width + column;
#pragma unroll
  for (int down = 0; down < rows; down += apart)
    copy_16_async(at + down * PanelTile<width, rows>::row_bytes, first + down * width, true);
}

/// Raises (`more`) or lowers the number of registers of each thread of this group to `count`.
template <bool more, int count>
__device__ inline void take_registers() {
  if constexpr (more) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
  }
}

/// One group's sums, 64 rows and `columns` columns.
template <int columns>
struct GroupSums {
  float c[columns / 2];

  /// This thread's first row; its other row is 8 rows below.
  __device__ static int row() { return group_thread() / 32 * 16 + (group_thread() % 32 >> 2); }
  /// This thread's first column; its others are 8 n columns to the right.
  __device__ static int column() { return 2 * (group_thread() & 3); }

  /// Calls f(n, half, pair) for every pair of neighbouring elements of this thread, in row() + 8
  /// half and column() + 8 n.
  template <class Function>
  __device__ void for_each(Function f) {
#pragma unroll
    for (int n = 0; n < columns / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 pair{c[4 * n + 2 * half], c[4 * n + 2 * half + 1]};
        f(n, half, pair);
        c[4 * n + 2 * half] = pair.x;
        c[4 * n + 2 * half + 1] = pair.y;
      }
    }
  }
  __device__ void clear() {
#pragma unroll
    for (float& x : c) x = 0.0F;
  }
  /// Multiplies row i by factors[i].
  __device__ void scale_rows(const float* factors) {
    const float first = factors[row()], second = factors[row() + 8];
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) c[i] *= (i & 2) == 0 ? first : second;
  }
  /// Keeps the compiler from using the sums before this point.
  __device__ void arrived() {
#pragma unroll
    for (float& x : c) asm volatile("" : "+f"(x)::"memory");
  }
};

/// Offsets of a thread's sums in a tile with the group's first sum at (row, column), multiples of
/// 64 and 32.
template <class Tile>
class GroupPlace {
 public:
  __device__ explicit GroupPlace(int row = 0, int column = 0)
      : start_(Tile::offset(row + GroupSums<64>::row(), column + GroupSums<64>::column())) {
    asm volatile("" : "+r"(start_));  // or the compiler keeps every place in a register
  }
  __device__ int at(int n, int half) const {
    return (start_ ^ (n % 8 * Tile::unit_bytes)) + n / 8 * Tile::panel_bytes + 8 * half * Tile::row_bytes;
  }

 private:
  int start_;
};

/// Writes sums as bf16 rows of global memory.
template <int columns>
__device__ inline void store_rows(const HeadRows<Bf16>& rows, const GroupSums<columns>& sums) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = group_thread() / 32 * 16 + 8 * half + (group_thread() % 32 >> 2);
#pragma unroll
    for (int n = 0; n < columns / 16; ++n) {
      const float* const left = sums.c + 8 * n + 2 * half;
      store_row_of_16(rows.row(row) + 16 * n, {left[0], left[1]}, {left[4], left[5]}, row < rows.count);
    }
  }
}

/// Packs columns [16 step, 16 step + 16) of sums as the left operand of a step.
template <int columns>
__device__ inline void pack_left(std::uint32_t (&a)[4], const GroupSums<columns>& sums, int step) {
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = packed_pair(sums.c[8 * step + 2 * i], sums.c[8 * step + 2 * i + 1]);
}

/// A barrier of `threads` threads with a number from 1 to 15.
struct GroupBarrier {
  int number, threads;

  __device__ void wait() const {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(number), "r"(threads) : "memory");
  }
  __device__ void arrive() const {
    asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(number), "r"(threads) : "memory");
  }
  /// Waits, and returns true if x is true in any of the threads.
  __device__ bool any(bool x) const {
    int found;
    asm volatile(
        "{.reg .pred p, q; setp.ne.b32 p, %1, 0; barrier.cta.red.or.aligned.pred q, %2, %3, p; selp.b32 %0, "
        "1, 0, q;}"
        : "=r"(found)
        : "r"(static_cast<int>(x)), "r"(number), "r"(threads)
        : "memory");
    return found != 0;
  }
};

}  // namespace baton
