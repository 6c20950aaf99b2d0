// SPDX-License-Identifier: Apache-2.0
// Tiles of tokens in shared memory: bf16 operands of the matrix instructions, and fp32 results.
//
//   a tile's row r keeps its 16-byte unit u at place u xor ((r xor r/8) mod 8)
//
// so that 8 neighbouring rows, and 8 rows that are 8 apart, lie in different banks: the first is how the matrix
// instructions read, the second how a warp walks along tokens in groups of 8.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace baton {

using Bf16 = __nv_bfloat16;

/// Threads of every kernel that works on tiles: 16 warps, seen as 4 by 4.
inline constexpr int tile_threads = 512;
/// Tokens of a chunk on the device.
inline constexpr int device_chunk = 64;

/// A run of rows of one head of x [tokens, heads, width].
template <class Element>
struct HeadRows {
  Element* first;       ///< The first row.
  std::int64_t stride;  ///< Elements from one row to the next.
  int count;

  __device__ Element* row(int i) const { return first + i * stride; }
};

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Two neighbouring elements as floats, and back.
__device__ inline float2 load_pair(const void* at) {
  return __bfloat1622float2(*static_cast<const __nv_bfloat162*>(at));
}
__device__ inline std::uint32_t packed_pair(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ inline void store_pair(void* at, float2 x) {
  *static_cast<std::uint32_t*>(at) = packed_pair(x.x, x.y);
}

/// bf16 rows of `width` elements in shared memory.
template <int width>
struct Bf16Tile {
  static constexpr int row_bytes = 2 * width;
  __host__ __device__ static constexpr int bytes(int rows) { return rows * row_bytes; }

  char* memory;

  __device__ static int offset(int row, int column) {
    return row * row_bytes + (((column >> 3) ^ ((row ^ (row >> 3)) & 7)) << 4) + (column & 7) * 2;
  }
  /// The offset `i` rows below `start`, i < 8, where start is in row 0 or 4 of its 8 and does not leave them.
  __device__ static int below(int start, int i) { return (start ^ (i << 4)) + i * row_bytes; }

  __device__ float2 pair(int at) const { return load_pair(memory + at); }
  __device__ void set_pair(int at, float2 x) const { store_pair(memory + at, x); }
  __device__ float at(int row, int column) const {
    return __bfloat162float(*reinterpret_cast<const Bf16*>(memory + offset(row, column)));
  }
  __device__ void set(int row, int column, float x) const {
    *reinterpret_cast<Bf16*>(memory + offset(row, column)) = __float2bfloat16(x);
  }
};

/// fp32 rows of `width` elements in shared memory; here the units that change places have 32 bytes.
template <int width>
struct FloatTile {
  static constexpr int row_bytes = 4 * width;
  __host__ __device__ static constexpr int bytes(int rows) { return rows * row_bytes; }

  char* memory;

  __device__ static int offset(int row, int column) {
    return row * row_bytes + (((column >> 3) ^ (row & 7)) << 5) + (column & 7) * 4;
  }
  __device__ static int below(int start, int i) { return (start ^ (i << 5)) + i * row_bytes; }

  __device__ float2 pair(int at) const { return *reinterpret_cast<const float2*>(memory + at); }
  __device__ void set_pair(int at, float2 x) const { *reinterpret_cast<float2*>(memory + at) = x; }
};

__device__ inline void copy_16_async(std::uint32_t into, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(into), "l"(from), "r"(there ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `pending` of this thread's groups of copies are under way.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Starts the copy of a chunk's rows into a tile; rows that are not there become zero.
template <int width>
__device__ inline void load_async(Bf16Tile<width> into, const HeadRows<const Bf16>& from) {
  constexpr int units = width / 8;
#pragma unroll
  for (int pass = 0; pass < device_chunk * units / tile_threads; ++pass) {
    const int i = pass * tile_threads + static_cast<int>(threadIdx.x);
    const int row = i / units, column = i % units * 8;
    const bool there = row < from.count;
    copy_16_async(shared_address(into.memory) + into.offset(row, column), from.row(there ? row : 0) + column,
                  there);
  }
}

/// Starts the copy of `rows` dense rows into a tile.
template <int width>
__device__ inline void load_dense_async(Bf16Tile<width> into, const Bf16* from, int rows) {
  constexpr int units = width / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * units; i += tile_threads) {
    copy_16_async(shared_address(into.memory) + into.offset(i / units, i % units * 8), from + i * 8, true);
  }
}

}  // namespace baton
