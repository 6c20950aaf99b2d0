// SPDX-License-Identifier: Apache-2.0
// Tiles of tokens in shared memory: bf16 operands of the matrix instructions, and fp32 results.
//
//   a tile's row r keeps its 16-byte unit u at place u xor ((r xor r/8) mod 8)
//
// so that 8 neighbouring rows, and 8 rows that are 8 apart, lie in different banks: the first is
// how the matrix instructions read, the second how a warp walks along tokens in groups of 8.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/device_limits.hpp"

namespace baton {

using Bf16 = __nv_bfloat16;

/// Threads of kernels on tiles: 16 warps, arranged 4 by 4.
inline constexpr int tile_threads = 512;
/// Tokens of a chunk on the device.
inline constexpr int device_chunk = 64;
static_assert(device_chunk == KernelTraits{}.tile);

/// A run of rows of one head of x [tokens, heads, width].
template <class Element>
struct HeadRows {
  Element* first;  ///< The first row.
  int stride;      ///< Elements from one row to the next.
  int count;

  __device__ Element* row(int i) const { return first + i * stride; }
};

/// The block's dynamic shared memory.
__device__ inline char* shared_space() {
  extern __shared__ __align__(1024) char space[];
  return space;
}

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// The sum of x over a warp, in every lane.
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(0xffffffffU, x, apart);
  return x;
}

/// Two neighbouring bf16 elements as floats.
__device__ inline float2 unpacked_pair(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000U)};
}
__device__ inline float2 load_pair(const void* at) {
  return unpacked_pair(*static_cast<const std::uint32_t*>(at));
}
/// Two floats as neighbouring bf16 elements.
__device__ inline std::uint32_t packed_pair(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
__device__ inline void store_pair(void* at, float2 x) {
  *static_cast<std::uint32_t*>(at) = packed_pair(x.x, x.y);
}

/// Stores 16 bytes in global memory at once; of an assignment the compiler makes four stores.
__device__ inline void store_16(void* into, const uint4& x) {
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(into), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}

/// Tile with bf16 rows of `width` elements in shared memory.
template <int width>
struct Bf16Tile {
  static constexpr int row_bytes = 2 * width;
  static constexpr int unit_bytes = 16;
  static constexpr bool swaps_rows_8_apart = true;
  __host__ __device__ static constexpr int bytes(int rows) { return rows * row_bytes; }

  char* memory;

  __device__ static int offset(int row, int column) {
    return row * row_bytes + (((column >> 3) ^ ((row ^ (row >> 3)) & 7)) << 4) + (column & 7) * 2;
  }
  /// The offset `i` rows below offset `start`, i < 8, where start is in row 0 or 4 of eight rows
  /// and the result stays within them.
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

/// Tile with fp32 rows of `width` elements in shared memory, swizzled in units of 32 bytes.
template <int width>
struct FloatTile {
  static constexpr int row_bytes = 4 * width;
  static constexpr int unit_bytes = 32;
  static constexpr bool swaps_rows_8_apart = false;
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
/// Waits until at most `pending` of this thread's groups of copies are incomplete.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Asks for `bytes` bytes, a multiple of 16, to be brought to the L2.
__device__ inline void bring_near(const void* from, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}
/// The same for the 128 bytes that an address lies in.
__device__ inline void bring_near(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}
/// The same for rows of `width` elements: thread `thread` asks for its part.
template <int width>
__device__ inline void bring_near(const HeadRows<const Bf16>& rows, int thread) {
  constexpr int lines = width / 64;
  if (thread / lines < rows.count) bring_near(rows.row(thread / lines) + thread % lines * 64);
}

/// Starts copies of chunks' rows into tiles. A thread copies the same part of every chunk.
template <int width>
class TileLoader {
 public:
  /// Makes a loader of the rows of head `head` of tensors [tokens, heads, width].
  __device__ TileLoader(std::int64_t tokens, int heads, int head)
      : tokens_(tokens),
        stride_(heads * width),
        row_(static_cast<int>(threadIdx.x) / units),
        from_(static_cast<std::int64_t>(row_) * stride_ + head * width + column()),
        into_(Bf16Tile<width>::offset(row_, column())) {}

  /// Copies a chunk of x [tokens, heads, width]; rows past the last token become zero.
  __device__ void load(const Bf16Tile<width>& into, const Bf16* x, int chunk) const {
    const std::int64_t first = static_cast<std::int64_t>(chunk) * device_chunk;
    const int count = static_cast<int>(min(static_cast<std::int64_t>(device_chunk), tokens_ - first)) - row_;
    const Bf16* from = x + from_ + first * stride_;
    const std::uint32_t at = shared_address(into.memory) + into_;
#pragma unroll
    for (int pass = 0; pass < device_chunk / rows; ++pass) {
      copy_16_async((at ^ ((pass * rows / 8 & 7) << 4)) + pass * rows * Bf16Tile<width>::row_bytes,
                    from + pass * rows * stride_, pass * rows < count);
    }
  }

 private:
  static constexpr int units = width / 8;            // of 16 bytes in a row
  static constexpr int rows = tile_threads / units;  // of one pass
  __device__ static int column() { return static_cast<int>(threadIdx.x) % units * 8; }

  std::int64_t tokens_;
  int stride_, row_;
  std::int64_t from_;
  int into_;
};

/// Offsets in a tile of `rows` dense rows that one thread copies: `count` units of 16 bytes.
template <int width, int rows>
struct DensePlaces {
  static constexpr int units = width / 8, apart = tile_threads / units;  // rows of one thread
  static constexpr int count = rows / apart;
  static_assert(rows % apart == 0 && tile_threads % units == 0 && apart % 8 == 0);

  __device__ static int row(int i) { return static_cast<int>(threadIdx.x) / units + i * apart; }
  __device__ static int offset(int i) {
    const int first = Bf16Tile<width>::offset(row(0), static_cast<int>(threadIdx.x) % units * 8);
    return (first ^ ((i * apart / 8 & 7) << 4)) + i * apart * Bf16Tile<width>::row_bytes;
  }

  /// Starts the copy of dense rows into a tile.
  __device__ static void load_async(const Bf16Tile<width>& into, const Bf16* from) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      copy_16_async(shared_address(into.memory) + offset(i), from + (threadIdx.x + i * tile_threads) * 8,
                    true);
  }
};

// The device side of kernel contracts (contracts.hpp): operands as pointers to bf16 or float, and
// the registration of bodies.

/// Operands of a device body.
using OnDevice = Pointers<Bf16>;

/// Function that enqueues a contract's kernel; operands are 16-byte aligned.
template <class Contract>
using DeviceBody = cudaError_t (*)(cudaStream_t, const typename Contract::template Operands<OnDevice>&,
                                   const typename Contract::Parameters&);

/// The registered device body of a contract, as `Contract::on_host` is its host body.
template <class Contract>
inline DeviceBody<Contract> on_device = nullptr;

/// Registers the device body of a contract, for the parameters that device_limits.hpp does not
/// refuse. `of_cudnn` returns the reason why cuDNN cannot run parameters that name it as the body.
/// `of_memory` makes the memory of a call, or returns the reason why it cannot.
template <class Contract>
RegisteredCudaKernel device_body(DeviceBody<Contract> body,
                                 Refusal (*of_cudnn)(const typename Contract::Parameters&) = nullptr,
                                 Refusal (*of_memory)(const typename Contract::Parameters&) = nullptr) {
  const auto run = [body](const CudaKernelCall& x) {
    const auto operands = bind_operands<typename Contract::template Operands<OnDevice>>(x.operands);
    cuda(body(x.stream, operands, parameters_of<Contract>(x.kernel)));
  };
  const auto unsupported = [of_cudnn, of_memory](const Kernel& kernel) -> Refusal {
    const auto& parameters = parameters_of<Contract>(kernel);
    if (Refusal refusal = refusal_of_body<Contract>(beyond_devices_at_all(parameters))) return refusal;
    if constexpr (requires { parameters.body; })
      if (parameters.body == SoftmaxBody::cudnn) {
        const Refusal lacking = cudnn_library().lacking();
        return lacking || of_cudnn == nullptr ? lacking : of_cudnn(parameters);
      }
    if (Refusal refusal = refusal_of_body<Contract>(beyond_own_bodies<Contract>(parameters))) return refusal;
    return of_memory == nullptr ? Refusal{} : of_memory(parameters);
  };
  on_device<Contract> = body;
  return {Contract::name, run, unsupported};
}

}  // namespace baton
