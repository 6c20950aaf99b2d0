// SPDX-License-Identifier: Apache-2.0
// What the device kernels of linear attention with a delta rule or a low-rank rule keep of every
// chunk, and where.
//
// With r a reference of the chunk's gates, q' = s q e^{b-r}, k' = k e^{b-r}, k" = k e^{r-b}, and
// (I + G B) N = I, a chunk has a record
//
//   W = N k'   k"   q'   A = tril(s q k^T decayed)        tiles [64, d_k], A [64, 64]
//   U^T = (N V)^T                                         tile [d_v, 64]
//   to = e^r, from = e^{all-r}, gamma = e^all             fp32 [d_k] each
//   beta                                                  fp32 [64]
//   T = B N,  G                                           tiles [64, 64], for gradients alone
//
// from which all passes over chunks follow without q, k, g (X [rows, d_k] a state, values first):
//
//   R = U - W (to X)^T      Vn = B R      O = q' (to X)^T + A Vn
//   X <- gamma X + from (Vn^T k")
//
// A chunk with vector gates has r in its middle; where gates are too strong for that, and where the
// gate is one a head or none, r = 0 for q' and k', k" = k e^{all-b}, to = from = 1.
// The record of a chunk of a low-rank rule (low_rank/factors.cuh) has the same parts with beta = 1,
// so that R is what the tokens read, and with the writes of keys and values besides:
//
//   W = -T r'   k" = b"   A = tril(q' b"^T)   U^T = (T Arv V)^T
//   keys k e^{r-b} [64, d_k], value_pairs = tril(q' keys^T), V^T [d_v, 64]
//
//   O = .. + value_pairs V        X <- .. + from (V^T keys)
//
// All passes of a call share the workspace; a record of d_k = d_v = 128 has 90 KiB, that of a
// low-rank rule 146.
#pragma once

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/workspace.cuh"

namespace baton {

/// The rule of a layer whose chunks have records.
enum class ChunkRule { delta, low_rank };

/// Bytes of a chunk's record.
constexpr int chunk_record_bytes(int d_k, int d_v, ChunkRule rule) {
  const int shared = 2 * device_chunk * (3 * d_k + d_v + 3 * device_chunk) + 4 * (3 * d_k + device_chunk);
  return rule == ChunkRule::delta ? shared : shared + 2 * device_chunk * (2 * d_k + d_v + device_chunk) + 16;
}

/// Offsets of the parts of a chunk's record.
template <int d_k, int d_v, ChunkRule rule = ChunkRule::delta>
struct ChunkRecord {
  /// True if tokens write their values along keys of their own, beside what they have read.
  static constexpr bool has_keys = rule == ChunkRule::low_rank;
  static constexpr int key_bytes = Bf16Tile<d_k>::bytes(device_chunk);
  static constexpr int value_bytes = Bf16Tile<device_chunk>::bytes(d_v);
  static constexpr int pair_bytes = Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int keys_at = 0, w_at = has_keys ? key_bytes : 0, k_at = w_at + key_bytes,
                       q_at = k_at + key_bytes, pairs_at = q_at + key_bytes,
                       value_pairs_at = pairs_at + pair_bytes;
  static constexpr int u_at = value_pairs_at + (has_keys ? pair_bytes : 0), values_at = u_at + value_bytes;
  static constexpr int floats_at = values_at + (has_keys ? value_bytes : 0);
  static constexpr int float_bytes = (3 * d_k + device_chunk) * 4 + (has_keys ? 16 : 0);
  static constexpr int t_at = floats_at + float_bytes, g_at = t_at + pair_bytes, reads_at = g_at + pair_bytes;
  static constexpr int bytes = reads_at + (has_keys ? key_bytes : 0);
  static_assert(bytes == chunk_record_bytes(d_k, d_v, rule));

  char* memory;

  __device__ Bf16Tile<d_k> w() const { return {memory + w_at}; }
  __device__ Bf16Tile<d_k> k() const { return {memory + k_at}; }
  __device__ Bf16Tile<d_k> q() const { return {memory + q_at}; }
  __device__ Bf16Tile<device_chunk> pairs() const { return {memory + pairs_at}; }
  __device__ Bf16Tile<device_chunk> u() const { return {memory + u_at}; }
  __device__ Bf16Tile<device_chunk> t() const { return {memory + t_at}; }
  __device__ Bf16Tile<device_chunk> g() const { return {memory + g_at}; }
  __device__ float* to() const { return reinterpret_cast<float*>(memory + floats_at); }
  __device__ float* from() const { return to() + d_k; }
  __device__ float* gamma() const { return from() + d_k; }
  __device__ float* beta() const { return gamma() + d_k; }

  // Of a low-rank rule alone.
  __device__ Bf16Tile<d_k> keys() const { return {memory + keys_at}; }
  __device__ Bf16Tile<device_chunk> value_pairs() const { return {memory + value_pairs_at}; }
  __device__ Bf16Tile<device_chunk> values() const { return {memory + values_at}; }
  __device__ Bf16Tile<d_k> reads() const { return {memory + reads_at}; }
  /// Not 0 if the chunk is strong.
  __device__ float* strong() const { return beta() + device_chunk; }
};

/// Copies a tile that has its layout in global memory too, by all threads of a block.
template <int bytes>
__device__ inline void copy_tile(char* into, const char* from) {
#pragma unroll
  for (int i = 0; i < bytes / 16 / tile_threads; ++i) {
    const int unit = static_cast<int>(threadIdx.x) + i * tile_threads;
    reinterpret_cast<uint4*>(into)[unit] = reinterpret_cast<const uint4*>(from)[unit];
  }
}

/// Offsets in the workspace of a call, in bytes. Each chunk has a record, and for gradients the
/// state before it and the gradient behind it [d_v, d_k], R^T and the gradient of Vn^T as tiles
/// [d_v, 64].
struct DeltaRoom {
  std::int64_t records = 0, states = 0, gradients = 0, missing = 0, d_written = 0, end = 0;

  DeltaRoom(const Chunks& p, bool has_gradients, ChunkRule rule = ChunkRule::delta) {
    const LayerShape& s = p.shape;
    const std::int64_t chunks = p.work.heads(s) * ((s.tokens + device_chunk - 1) / device_chunk);
    states = chunks * chunk_record_bytes(static_cast<int>(s.d_k), static_cast<int>(s.d_v), rule);
    end = states;
    if (!has_gradients) return;
    const std::int64_t state = chunks * s.d_v * s.d_k * 2, values = chunks * s.d_v * device_chunk * 2;
    gradients = states + state;
    missing = gradients + state;
    d_written = missing + values;
    end = d_written + values;
  }
};

/// Makes the workspace `bytes` bytes large, and returns the reason if that is impossible.
inline Refusal lacks_workspace(std::int64_t bytes) {
  cudaDeviceProp device;
  int number = 0;
  if (cudaGetDevice(&number) != cudaSuccess || cudaGetDeviceProperties(&device, number) != cudaSuccess)
    return "no GPU here";
  if (device.major < 9) return "kernels of delta and low-rank rules need a GPU of compute capability 9.0";
  try {
    Workspace::shared().grow(static_cast<std::size_t>(bytes));
    return {};
  } catch (const SystemError& error) {
    return error.what();
  }
}

/// The workspace that all calls of a process share.
inline char* delta_workspace() { return reinterpret_cast<char*>(Workspace::shared().get()); }

}  // namespace baton
