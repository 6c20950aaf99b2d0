// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes gradients, and its barriers.
//
//   two chunks' q, k, g; one chunk's v, d_o, S; the state before the segment; D', later T; decays
//
// dA and A of a strong chunk take the room of S when that is used up.
#pragma once

#include "sp_methods/kernels/device/gla/groups/chunk_scaler.cuh"

namespace baton {

/// Shared memory of a block of gradients, without gates a head. It has 227 KiB at d_k = d_v = 128,
/// so one block a multiprocessor.
template <int d_k, int d_v, GateKind kind>
struct GradientRoom {
  using Keys = PanelTile<d_k>;
  using Values = PanelTile<d_v>;
  using State = PanelTile<d_v, d_k>;
  using Gates = GateTile<kind, d_k, Keys>;
  using Terms = FloatTile<d_k>;
  static constexpr int slot_bytes = (kind == GateKind::vector ? 3 : 2) * Keys::bytes;
  static constexpr int v_at = 2 * slot_bytes, d_o_at = v_at + Values::bytes,
                       state_at = d_o_at + Values::bytes;
  static constexpr int start_at = state_at + std::max(State::bytes, 2 * PanelTile<device_chunk>::bytes);
  static constexpr int room_at = start_at + State::bytes;
  static constexpr int floats_at = room_at + std::max(State::bytes, Terms::bytes(device_chunk));
  static constexpr int shared_bytes = floats_at + 6 * d_k * static_cast<int>(sizeof(float));
  static constexpr int threads = 3 * group_threads;

  __device__ static char* slot(int step) { return shared_space() + (step & 1) * slot_bytes; }
  __device__ static Keys q(int step) { return {slot(step)}; }
  __device__ static Keys k(int step) { return {slot(step) + Keys::bytes}; }
  __device__ static Gates gates(int step) { return {slot(step) + 2 * Keys::bytes}; }
  __device__ static Values v() { return {shared_space() + v_at}; }
  __device__ static Values d_o() { return {shared_space() + d_o_at}; }
  __device__ static State state() { return {shared_space() + state_at}; }
  /// The state before the segment.
  __device__ static State start() { return {shared_space() + start_at}; }
  __device__ static State gradient() { return {shared_space() + room_at}; }
  __device__ static Terms terms() { return {shared_space() + room_at}; }
  /// dA of a strong chunk, in the memory of S after its use.
  __device__ static PanelTile<device_chunk> d_scores() { return {shared_space() + state_at}; }
  /// A of a strong chunk, in the memory of S after its use.
  __device__ static PanelTile<device_chunk> scores() {
    return {d_scores().memory + PanelTile<device_chunk>::bytes};
  }

  __device__ static float* to(int step) { return floats() + (step & 1) * d_k; }
  __device__ static float* from(int step) { return floats() + (2 + (step & 1)) * d_k; }
  /// R; before it the parts of R from the state. Groups that share rows have two such parts, the
  /// second in the memory of the decays after their use.
  __device__ static float* right() { return floats() + 4 * d_k; }
  /// Decays [d_k] from the segment's first token to the chunk.
  __device__ static float* decays() { return floats() + 5 * d_k; }

  /// s e^{b - r} of two channels of a gentle chunk.
  __device__ static float2 factor(int step, int at) {
    if constexpr (kind == GateKind::vector) return load_pair(gates(step).memory + at);
    const float s = power_of_2(log2_scale<d_k>);
    return {s, s};
  }

  __device__ static GroupBarrier scaling() { return {1, group_threads}; }
  __device__ static GroupBarrier full() { return {2, threads}; }
  __device__ static GroupBarrier room_free() { return {3, threads}; }
  __device__ static GroupBarrier values_free() { return {4, threads}; }
  __device__ static GroupBarrier terms_there() { return {5, threads}; }
  __device__ static GroupBarrier multiplying() { return {6, 2 * group_threads}; }
  __device__ static GroupBarrier keys_there() { return {7, 2 * group_threads}; }
  __device__ static GroupBarrier own() { return {8 + group(), group_threads}; }

 private:
  __device__ static float* floats() { return reinterpret_cast<float*>(shared_space() + floats_at); }
};

}  // namespace baton
