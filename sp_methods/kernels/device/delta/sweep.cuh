// SPDX-License-Identifier: Apache-2.0
// All sweeps over the chunks of one head work alike: a block has 16 or 32 rows of the state
// [rows, d_k], since rows do not depend on one another, and takes the chunks in order.
//
//   records    a ring of stages that the blocks of a cluster fill together (record_stream.cuh)
//   state      fp32 in registers: a warp has all rows and 16 channels
//   operand    a bf16 copy of the state, scaled to the chunk's reference
//
// Eight warps multiply and a ninth copies. 32 rows where that many blocks still fill the chip.
// Cost: every cluster reads the records of its head once.
#pragma once

#include "sp_methods/kernels/device/delta/record_stream.cuh"
#include "sp_methods/kernels/device/gla/gate_walk.cuh"

namespace baton {

/// Threads that multiply (sweep_workers), and all threads of a block (sweep_threads).
inline constexpr int sweep_workers = 256, sweep_threads = sweep_workers + 32;
/// True if this thread multiplies.
__device__ inline bool works() { return threadIdx.x < sweep_workers; }
/// Synchronizes the threads of a block that multiply.
__device__ inline void meet_workers() { asm volatile("bar.sync 1, %0;" ::"n"(sweep_workers) : "memory"); }

/// Decays of this lane's channels in a chunk: columns 8 n + 2 (lane mod 4) and the next one.
struct LaneDecays {
  float2 to[2], from[2], gamma[2];

  /// Reads the decays, where `column` is the first of the warp's 16 channels.
  template <class Record>
  __device__ void read(const Record& record, int column) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int at = column + 8 * n + 2 * (lane() & 3);
      to[n] = *reinterpret_cast<const float2*>(record.to() + at);
      from[n] = *reinterpret_cast<const float2*>(record.from() + at);
      gamma[n] = *reinterpret_cast<const float2*>(record.gamma() + at);
    }
  }
};

/// The product state (.) factors, with one factor a channel.
template <int tiles>
__device__ inline Sums<tiles, 1> scaled_columns(const Sums<tiles, 1>& state, const float2 (&factors)[2]) {
  Sums<tiles, 1> out;
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i) {
    const int m = i / 4, n = i / 2 % 2, half = i % 2;
    out.c[m][n][2 * half] = state.c[m][n][2 * half] * factors[n].x;
    out.c[m][n][2 * half + 1] = state.c[m][n][2 * half + 1] * factors[n].y;
  }
  return out;
}

/// Sets state = gamma (.) state + factors (.) added.
template <int tiles>
__device__ inline void advance(Sums<tiles, 1>& state, const float2 (&gamma)[2], const Sums<tiles, 1>& added,
                               const float2 (&factors)[2]) {
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i) {
    const int m = i / 4, n = i / 2 % 2, half = i % 2;
    float& x = state.c[m][n][2 * half];
    float& y = state.c[m][n][2 * half + 1];
    x = fmaf(gamma[n].x, x, factors[n].x * added.c[m][n][2 * half]);
    y = fmaf(gamma[n].y, y, factors[n].y * added.c[m][n][2 * half + 1]);
  }
}

/// Sets a warp's part of a state from fp32 rows of d_k numbers, or to zero if `rows` is null.
template <int tiles>
__device__ inline void read_state(Sums<tiles, 1>& state, const float* rows, int d_k, int column) {
  state.for_each([&](int r, int c, float2& x) {
    x = rows == nullptr ? float2{0.0F, 0.0F} : *reinterpret_cast<const float2*>(rows + r * d_k + column + c);
  });
}

template <int tiles>
__device__ inline void write_state(float* rows, int d_k, int column, Sums<tiles, 1>& state) {
  state.for_each(
      [&](int r, int c, float2& x) { *reinterpret_cast<float2*>(rows + r * d_k + column + c) = x; });
}

/// Number of 16-row tiles that a block computes, 1 or 2, if each head of the call has `rows` rows.
inline int tiles_of_block(const Chunks& p, int rows) {
  return p.work.heads(p.shape) * rows / 16 > KernelTraits{}.blocks ? 2 : 1;
}

/// Number of blocks in a cluster, which read a record together. Clusters of four and more leave
/// some of the 132 multiprocessors idle, since those of a cluster must be neighbours.
inline constexpr unsigned sweep_cluster = 2;

/// Launches a sweep of `slabs` blocks a head.
template <class... Parameters, class... Arguments>
cudaError_t launch_sweep(cudaStream_t stream, const Chunks& p, int slabs, int shared_bytes,
                         void (*kernel)(Parameters...), const Arguments&... arguments) {
  const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (code != cudaSuccess) return code;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {1, sweep_cluster, 1};
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(p.work.heads(p.shape)), static_cast<unsigned>(slabs));
  launch.blockDim = dim3(sweep_threads);
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  launch.stream = stream;
  launch.attrs = &cluster;
  launch.numAttrs = 1;
  return cudaLaunchKernelEx(&launch, kernel, DeviceLayer(Segments{p.shape, p.work, 1, Dtype::bf16}),
                            arguments...);
}

}  // namespace baton
