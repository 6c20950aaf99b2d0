// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes gradients: two chunks' q, k and g, one chunk's v, d_o, S, D', A
// and dA.
//
// X and Y, 64 rows of fp32, take the room of S and D' when those are used up. At d_k = d_v = 128: 222 KiB,
// one block a multiprocessor.
#pragma once

#include "sp_methods/kernels/device/gla/gradient_walk.cuh"
#include "sp_methods/kernels/device/gla/segment_output.cuh"

namespace baton {

/// The block's shared memory.
template <int d_k, int d_v, GateKind kind>
struct GradientMemory {
  using Gates = GateTile<kind, d_k>;
  using Walk = GradientWalk<kind, d_k>;
  static constexpr int k_bytes = Bf16Tile<d_k>::bytes(device_chunk),
                       v_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int slot_bytes = 2 * k_bytes + Gates::bytes();
  static constexpr int v_at = 2 * slot_bytes, d_o_at = v_at + v_bytes, scores_at = d_o_at + v_bytes;
  static constexpr int d_scores_at = scores_at + Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int state_at = d_scores_at + Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int state_bytes = std::max(Bf16Tile<d_v>::bytes(d_k), FloatTile<d_k>::bytes(device_chunk));
  static constexpr int gradient_at = state_at + state_bytes, floats_at = gradient_at + state_bytes;
  static constexpr int floats = 2 * Walk::groups * d_k + 4 * d_k + 6 * d_k + 2 * device_chunk;
  static constexpr int shared_bytes = floats_at + floats * static_cast<int>(sizeof(float));

  __device__ static Bf16Tile<d_k> q(int step) { return {shared_space() + (step & 1) * slot_bytes}; }
  __device__ static Bf16Tile<d_k> k(int step) { return {shared_space() + (step & 1) * slot_bytes + k_bytes}; }
  __device__ static Gates gates(int step) { return {shared_space() + (step & 1) * slot_bytes + 2 * k_bytes}; }
  __device__ static Bf16Tile<d_v> v() { return {shared_space() + v_at}; }
  __device__ static Bf16Tile<d_v> d_o() { return {shared_space() + d_o_at}; }
  __device__ static Bf16Tile<device_chunk> scores() { return {shared_space() + scores_at}; }
  __device__ static Bf16Tile<device_chunk> d_scores() { return {shared_space() + d_scores_at}; }
  __device__ static Bf16Tile<d_v> state() { return {shared_space() + state_at}; }
  __device__ static Bf16Tile<d_v> gradient() { return {shared_space() + gradient_at}; }
  __device__ static FloatTile<d_k> x() { return {shared_space() + state_at}; }
  __device__ static FloatTile<d_k> y() { return {shared_space() + gradient_at}; }

  __device__ static float* starts() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  __device__ static float* sums() { return starts() + Walk::groups * d_k; }
  __device__ static float* middles() { return sums() + Walk::groups * d_k; }
  __device__ static float* alls() { return middles() + d_k; }
  __device__ static float* to_middle() { return alls() + d_k; }
  __device__ static float* from_middle() { return to_middle() + d_k; }
  /// R in 6 parts: 4 of the pairs that pass the whole chunk, 2 of the keys'.
  __device__ static float* passing() { return from_middle() + d_k; }
  __device__ static float* leaving() { return passing() + 4 * d_k; }
  __device__ static float* room() { return leaving() + 2 * d_k; }
};

}  // namespace baton
