// SPDX-License-Identifier: Apache-2.0
// What sweeps over the chunks of one head have in common: a block has 16 rows of the state [rows,
// d_k], since rows do not depend on one another, and takes the chunks in order.
//
//   stages    rings of chunks' records in shared memory, filled by copies that run ahead
//   state     fp32 in registers: a warp has 16 rows and 16 channels
//   operand   a bf16 copy of the state, scaled to the chunk's reference
//
// Cost: each block reads the records of its head; blocks of a head run side by side and share the L2.
#pragma once

#include "sp_methods/kernels/device/delta/layer.cuh"
#include "sp_methods/kernels/device/gla/gate_walk.cuh"

namespace baton {

inline constexpr int sweep_threads = 256, sweep_rows = 16;

/// Starts copies of `bytes` bytes, a multiple of 16.
template <int bytes>
__device__ inline void copy_run_async(char* into, const char* from) {
  constexpr int units = bytes / 16;
#pragma unroll
  for (int i = 0; i < (units + sweep_threads - 1) / sweep_threads; ++i) {
    const int unit = static_cast<int>(threadIdx.x) + i * sweep_threads;
    if (units % sweep_threads == 0 || unit < units)
      copy_16_async(shared_address(into) + 16 * unit, from + 16 * unit, true);
  }
}

/// The decays of this lane's channels in a chunk: of sums' columns 8 n + 2 (lane mod 4) and the next.
struct LaneDecays {
  float2 to[2], from[2], gamma[2];

  /// `column`: the first of the warp's 16 channels.
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

/// state (.) factors, a factor a channel.
__device__ inline Sums<1, 1> scaled_columns(const Sums<1, 1>& state, const float2 (&factors)[2]) {
  Sums<1, 1> out;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      out.c[0][n][2 * half] = state.c[0][n][2 * half] * factors[n].x;
      out.c[0][n][2 * half + 1] = state.c[0][n][2 * half + 1] * factors[n].y;
    }
  }
  return out;
}

/// state <- gamma (.) state + factors (.) added.
__device__ inline void advance(Sums<1, 1>& state, const float2 (&gamma)[2], const Sums<1, 1>& added,
                               const float2 (&factors)[2]) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& x = state.c[0][n][2 * half];
      float& y = state.c[0][n][2 * half + 1];
      x = fmaf(gamma[n].x, x, factors[n].x * added.c[0][n][2 * half]);
      y = fmaf(gamma[n].y, y, factors[n].y * added.c[0][n][2 * half + 1]);
    }
  }
}

/// Sets a warp's part of a state from fp32 rows of d_k, or to zero.
__device__ inline void read_state(Sums<1, 1>& state, const float* rows, int d_k, int column) {
  state.for_each([&](int r, int c, float2& x) {
    x = rows == nullptr ? float2{0.0F, 0.0F}
                        : *reinterpret_cast<const float2*>(rows + static_cast<std::int64_t>(r) * d_k + column + c);
  });
}

__device__ inline void write_state(float* rows, int d_k, int column, Sums<1, 1>& state) {
  state.for_each([&](int r, int c, float2& x) {
    *reinterpret_cast<float2*>(rows + static_cast<std::int64_t>(r) * d_k + column + c) = x;
  });
}

/// Launches a sweep: a block for each head and each 16 rows.
template <class... Parameters, class... Arguments>
cudaError_t launch_sweep(cudaStream_t stream, const Chunks& p, int slabs, int shared_bytes,
                         void (*kernel)(Parameters...), const Arguments&... arguments) {
  const auto code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (code != cudaSuccess) return code;
  const dim3 grid(static_cast<unsigned>(p.work.heads(p.shape)), static_cast<unsigned>(slabs));
  kernel<<<grid, sweep_threads, shared_bytes, stream>>>(DeviceLayer(Segments{p.shape, p.work, 1, Dtype::bf16}),
                                                        arguments...);
  return cudaGetLastError();
}

}  // namespace baton
