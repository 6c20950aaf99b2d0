// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes gradients, and its barriers.
//
//   two chunks' q, k, v, d_o, g and decays; D', A and dA of one chunk
//
// The gradients dq, dk, dg lie where q, k, g were until they are written.
#pragma once

#include "sp_methods/kernels/device/gla/groups/chunk_scaler.cuh"

namespace baton {

/// Shared memory of a block of gradients. It has 211 KiB at d_k = d_v = 128 with vector gates, so
/// one block a multiprocessor.
template <int d_k, int d_v, GateKind kind>
struct GradientRoom {
  using Keys = PanelTile<d_k>;
  using Values = PanelTile<d_v>;
  using State = PanelTile<d_v, d_k>;
  using Scores = PanelTile<device_chunk>;
  using Gates = GateTile<kind, d_k, Keys>;
  static constexpr int groups = d_k / 64;  ///< Groups that multiply.
  static constexpr int threads = (groups + 1) * group_threads;
  static constexpr int v_at = 2 * Keys::bytes, d_o_at = v_at + Values::bytes, g_at = d_o_at + Values::bytes;
  static constexpr int slot_bytes = g_at + (Gates::bytes() + 1023) / 1024 * 1024;
  static constexpr int gradient_at = 2 * slot_bytes, scores_at = gradient_at + State::bytes;
  static constexpr int floats_at = scores_at + 2 * Scores::bytes;
  static constexpr int factors_at = 4 * d_k, terms_at = factors_at + 2 * device_chunk;
  static constexpr int parts = kind == GateKind::scalar ? 4 * groups * device_chunk : 0;
  static constexpr int shared_bytes =
      floats_at + (terms_at + 2 * parts + 2) * static_cast<int>(sizeof(float));

  __device__ static char* slot(int step) { return shared_space() + (step & 1) * slot_bytes; }
  __device__ static Keys q(int step) { return {slot(step)}; }
  __device__ static Keys k(int step) { return {slot(step) + Keys::bytes}; }
  __device__ static Values v(int step) { return {slot(step) + v_at}; }
  __device__ static Values d_o(int step) { return {slot(step) + d_o_at}; }
  __device__ static Gates gates(int step) { return {slot(step) + g_at}; }
  /// D' = from (.) D.
  __device__ static State gradient() { return {shared_space() + gradient_at}; }
  __device__ static Scores scores() { return {shared_space() + scores_at}; }
  __device__ static Scores d_scores() { return {scores().memory + Scores::bytes}; }

  /// Decays [d_k] of chunk `step` from its start to its middle.
  __device__ static float* to(int step) { return floats() + (step & 1) * d_k; }
  /// Decays [d_k] of chunk `step` from its middle to its end.
  __device__ static float* from(int step) { return floats() + (2 + (step & 1)) * d_k; }
  /// s e^{b - r} [tokens] of a gate a head.
  __device__ static float* factors(int step) { return floats() + factors_at + (step & 1) * device_chunk; }
  /// The terms of dg of a gate a head, summed over each warp's channels: [warps, tokens].
  __device__ static float* terms(int step) { return floats() + terms_at + (step & 1) * parts; }
  /// Not 0 if a chunk is strong.
  __device__ static int& strong(int step) {
    return reinterpret_cast<int*>(floats() + terms_at + 2 * parts)[step & 1];
  }

  __device__ static GroupBarrier scaling() { return {1, group_threads}; }
  /// A chunk is copied and scaled.
  __device__ static GroupBarrier full(int step) { return {2 + (step & 1), threads}; }
  /// The room of q, k and g may be used again.
  __device__ static GroupBarrier keys_free(int step) { return {4 + (step & 1), threads}; }
  /// The room of v and d_o may be used again.
  __device__ static GroupBarrier values_free(int step) { return {10 + (step & 1), threads}; }
  /// A, dA and D' are there.
  __device__ static GroupBarrier operands_there() { return {6, groups * group_threads}; }
  /// All products of a chunk are complete.
  __device__ static GroupBarrier multiplied() { return {7, groups * group_threads}; }
  /// The sums over channels of a gate a head are there.
  __device__ static GroupBarrier terms_there() { return {12, groups * group_threads}; }
  __device__ static GroupBarrier own() { return {8 + group(), group_threads}; }

 private:
  __device__ static float* floats() { return reinterpret_cast<float*>(shared_space() + floats_at); }
};

}  // namespace baton
