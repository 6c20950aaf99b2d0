// SPDX-License-Identifier: Apache-2.0
// Work on rows of a matrix, 8 to 128 threads a row, with sums over each row and over all of them.
//
//   each group of `lanes` threads: for its rows, `most` packs of 8 numbers a thread in registers
//       what the operation does, which may add up numbers for each column
//   a block adds up its groups' sums in order, and a second kernel those of all blocks
//
// The blocks are as many as run at once, so all sums have one order on one kind of device, and
// every round has the same bits. The rows are read once; the bound is the memory's rate.
#pragma once

#include <cstdint>

#include "sp_methods/models/kernels/device/body.cuh"

namespace baton {

inline constexpr int row_threads = 256;

/// log(1 + t) of t in (0, 1], to bf16's precision.
__device__ inline float log_of_one_and(float t) { return t < 1e-3F ? t : __logf(1 + t); }

/// log(1 + e^z).
__device__ inline float softplus(float z) { return fmaxf(z, 0) + log_of_one_and(__expf(-fabsf(z))); }

/// One thread's part of a row.
template <int lanes, int most>
struct RowLane {
  int packs;  ///< Packs of a row.
  std::int64_t row;
  int turn;  ///< Number of this row among the rows of its group of threads.

  __device__ int column(int i) const { return static_cast<int>(threadIdx.x) % lanes + i * lanes; }
  __device__ bool has(int i) const { return column(i) < packs; }
  __device__ std::int64_t place(int i) const { return row * packs + column(i); }

  /// The sums of x and of y over the threads of a row, in each of them. All threads of the block
  /// call it once a turn.
  __device__ float2 sums(float x, float y) const {
#pragma unroll
    for (int apart = (lanes < 32 ? lanes : 32) / 2; apart > 0; apart /= 2) {
      x += __shfl_xor_sync(0xffffffffU, x, apart);
      y += __shfl_xor_sync(0xffffffffU, y, apart);
    }
    if constexpr (lanes > 32) {
      // Two places take turns, so a warp that is ahead writes none that another still reads.
      __shared__ float2 of_warps[2][row_threads / 32];
      const int warp = static_cast<int>(threadIdx.x) / 32, first = warp / (lanes / 32) * (lanes / 32);
      if (threadIdx.x % 32 == 0) of_warps[turn % 2][warp] = {x, y};
      __syncthreads();
      x = y = 0;
      for (int i = first; i < first + lanes / 32; ++i) {
        x += of_warps[turn % 2][i].x;
        y += of_warps[turn % 2][i].y;
      }
    }
    return {x, y};
  }
};

/// Adds up the groups' sums of columns, in order, and stores them as one row of `into` for this
/// block.
template <int lanes, int most>
__device__ void store_block_sums(float* into, const Eight (&sums)[most], int packs) {
  extern __shared__ __align__(16) float total[];
  const int group = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  for (int turn = 0; turn < row_threads / lanes; ++turn) {
    for (int i = 0; i < most && group == turn; ++i) {
      const int at = lane + i * lanes;
      if (at >= packs) continue;
      Eight sum = sums[i];
      if (turn > 0) {
        const Eight before = load(total, at);
        for (int n = 0; n < pack; ++n) sum.x[n] += before.x[n];
      }
      store(total, at, sum);
    }
    __syncthreads();
  }
  for (int at = static_cast<int>(threadIdx.x); at < packs; at += row_threads)
    store(into + std::int64_t{blockIdx.x} * packs * pack, at, load(total, at));
}

/// Stores the sum of what the threads of a block have, in an order that does not change.
__device__ inline void store_block_sum(float* into, float part) {
  __shared__ float sums[row_threads];
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = part;
  for (int apart = row_threads / 2; apart > 0; apart /= 2) {
    __syncthreads();
    if (thread < apart) sums[thread] += sums[thread + apart];
  }
  if (thread == 0) *into = sums[0];
}

/// Runs the operation on all rows, `apart` times their width one from the next. `Operation` has
/// `void operator()(const RowLane<..>&, Eight (&sums)[most], bool there)`, called by all threads of
/// a block together.
template <class Operation, int lanes, int most>
__global__ void __launch_bounds__(row_threads)
    row_kernel(Operation operation, std::int64_t count, int packs, std::int64_t apart, float* partial) {
  constexpr int groups = row_threads / lanes;
  Eight sums[most] = {};
  int turn = 0;
  for (std::int64_t of_block = std::int64_t{blockIdx.x} * groups; of_block < count;
       of_block += std::int64_t{gridDim.x} * groups, ++turn) {
    const std::int64_t row = of_block + threadIdx.x / lanes;
    operation(RowLane<lanes, most>{packs, row < count ? row * apart : 0, turn}, sums, row < count);
  }
  if (partial != nullptr) store_block_sums<lanes, most>(partial, sums, packs);
}

/// Sets into [width] to the sum of the rows that blocks stored in `partial`. A block of threads [8,
/// 32] has 32 columns.
inline __global__ void __launch_bounds__(256)
    add_up_blocks_kernel(float* into, const float* partial, int width, int runs) {
  __shared__ float sums[8][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, part = static_cast<int>(threadIdx.x) / 32;
  const int column = static_cast<int>(blockIdx.x) * 32 + lane;
  float sum = 0;
  for (int run = part; run < runs && column < width; run += 8)
    sum += partial[std::int64_t{run} * width + column];
  sums[part][lane] = sum;
  __syncthreads();
  if (part != 0 || column >= width) return;
  for (int i = 1; i < 8; ++i) sum += sums[i][lane];
  into[column] = sum;
}

/// Number of blocks of a kernel that run at once on the current GPU.
template <class Kernel>
int resident_blocks(Kernel* kernel, std::size_t shared) {
  int gpu = 0, processors = 0, of_one = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu));
  cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, row_threads, shared));
  return processors * of_one;
}

template <class Operation, int lanes, int most>
cudaError_t launch_rows(cudaStream_t stream, const Operation& operation, const Rows& p, float* column_sums) {
  const int packs = static_cast<int>(p.width / pack);
  constexpr int groups = row_threads / lanes;
  float* partial = column_sums == nullptr ? nullptr : reinterpret_cast<float*>(Workspace::shared().get());
  const std::size_t shared = partial == nullptr ? 0 : static_cast<std::size_t>(p.width) * sizeof(float);
  const auto kernel = row_kernel<Operation, lanes, most>;
  const auto blocks = static_cast<int>(
      std::min<std::int64_t>((p.count + groups - 1) / groups, resident_blocks(kernel, shared)));
  kernel<<<blocks, row_threads, shared, stream>>>(operation, p.count, packs, p.groups, partial);
  if (partial != nullptr)
    add_up_blocks_kernel<<<static_cast<unsigned>((p.width + 31) / 32), 256, 0, stream>>>(
        column_sums, partial, static_cast<int>(p.width), blocks);
  return cudaGetLastError();
}

/// Enqueues an operation on rows of a width that `unless_packed` takes, each the first of
/// `p.groups` ones that lie side by side. `column_sums` [width], unless it is null, gets the sums
/// of columns that the operation adds up.
template <class Operation>
cudaError_t run_rows(cudaStream_t stream, const Operation& operation, const Rows& p, float* column_sums) {
  const std::int64_t packs = p.width / pack;
  if (packs <= 8) return launch_rows<Operation, 8, 1>(stream, operation, p, column_sums);
  if (packs <= 16) return launch_rows<Operation, 16, 1>(stream, operation, p, column_sums);
  if (packs <= 64) return launch_rows<Operation, 64, 1>(stream, operation, p, column_sums);
  if (packs <= 256) return launch_rows<Operation, 128, 2>(stream, operation, p, column_sums);
  return launch_rows<Operation, 128, 4>(stream, operation, p, column_sums);
}

}  // namespace baton
