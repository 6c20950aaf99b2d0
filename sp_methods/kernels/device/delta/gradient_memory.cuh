// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes the gradients of a chunk under a delta rule with a
// gate a channel.
//
//   room                 first            then
//   dA, dG               gates            dA, dG
//   Z                    Z                gates once more
//   dO .. Z                               after the gates, rows of a level of strong pairs
//   S, D                 S, D             b of every token and channel
//
// At d_k = d_v = 128: 184 KiB, one block a multiprocessor.
#pragma once

#include "sp_methods/kernels/device/delta/scaling.cuh"

namespace baton {

template <int d_k, int d_v>
struct DeltaGradientMemory {
  using Pairs = Bf16Tile<device_chunk>;
  using Gates = GateTile<GateKind::vector, d_k>;
  /// Sums over channels that dg has besides terms of tokens.
  static constexpr int edge_sums = 8;
  static constexpr int key_bytes = Bf16Tile<d_k>::bytes(device_chunk);
  static constexpr int value_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int pair_bytes = Pairs::bytes(device_chunk);
  static constexpr int in_at = key_bytes, out_at = 2 * key_bytes, d_o_at = 3 * key_bytes;
  static constexpr int missing_at = d_o_at + value_bytes, z_at = missing_at + value_bytes;
  // The gates come once more where Z was, and may need more room than it.
  static constexpr int d_queries_at = z_at + std::max(value_bytes, Gates::bytes()),
                       d_keys_at = d_queries_at + pair_bytes;
  static constexpr int state_at = d_keys_at + pair_bytes, state_bytes = Bf16Tile<d_k>::bytes(d_v);
  static constexpr int floats_at = state_at + std::max(2 * state_bytes, FloatTile<d_k>::bytes(device_chunk));
  static constexpr int shared_bytes = floats_at + 4 * (2 * device_chunk + (3 + edge_sums + 4) * d_k);
  static_assert(d_o_at + 2 * key_bytes <= d_queries_at);
  static_assert(Gates::bytes() <= 2 * pair_bytes && d_k >= device_chunk);

  __device__ static Bf16Tile<d_k> q() { return {shared_space()}; }
  __device__ static Bf16Tile<d_k> keys_in() { return {shared_space() + in_at}; }
  __device__ static Bf16Tile<d_k> keys_out() { return {shared_space() + out_at}; }
  __device__ static Bf16Tile<d_v> d_o() { return {shared_space() + d_o_at}; }
  __device__ static Bf16Tile<d_v> missing() { return {shared_space() + missing_at}; }
  __device__ static Bf16Tile<d_v> z() { return {shared_space() + z_at}; }
  /// Scaled rows of one level of a strong chunk's pairs.
  __device__ static Bf16Tile<d_k> level_queries() { return {shared_space() + d_o_at}; }
  __device__ static Bf16Tile<d_k> level_keys() { return {shared_space() + d_o_at + key_bytes}; }
  __device__ static Gates gates_again() { return {shared_space() + z_at}; }
  __device__ static Pairs d_queries() { return {shared_space() + d_queries_at}; }
  __device__ static Pairs d_keys() { return {shared_space() + d_keys_at}; }
  __device__ static Gates gates() { return {shared_space() + d_queries_at}; }
  __device__ static Bf16Tile<d_k> state() { return {shared_space() + state_at}; }
  __device__ static Bf16Tile<d_k> gradient() { return {shared_space() + state_at + state_bytes}; }
  __device__ static FloatTile<d_k> log2_decays() { return {shared_space() + state_at}; }

  __device__ static float* beta() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  __device__ static float* own() { return beta() + device_chunk; }
  /// The decays [d_k] to the reference, later r.
  __device__ static float* to() { return own() + device_chunk; }
  /// The decays [d_k] from the reference, later b at the chunk's end.
  __device__ static float* from() { return to() + d_k; }
  /// The decays [d_k] over the chunk.
  __device__ static float* gamma() { return from() + d_k; }
  /// Four partial sums [4, d_k] of S (.) D, for gates of pairs that pass the chunk.
  __device__ static float* passing() { return gamma() + d_k; }
  /// Four partial sums [4, d_k] over keys, for gates of pairs that pass the chunk's right edge.
  __device__ static float* leaving() { return passing() + 4 * d_k; }
  __device__ static float* totals() { return passing() + edge_sums * d_k; }
};

}  // namespace baton
