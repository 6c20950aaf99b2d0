// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes the gradients of chunks on warp groups, and its
// barriers.
//
//   two chunks' q, k, dO, R, Z    one chunk's S, D    numbers a token
//
// dA and dG take the place of dO after its last product. At d_k = d_v = 128: 227 KiB, one block a
// multiprocessor.
#pragma once

#include "sp_methods/kernels/device/tile/wgmma.cuh"

namespace baton {

/// Shared memory of a block of gradients. Functions of a step give the memory of that step's chunk,
/// of two in turn.
template <int d_k, int d_v>
struct DeltaGradientRoom {
  using Keys = PanelTile<d_k>;
  using Values = PanelTile<d_v>;
  using State = PanelTile<d_k, d_v>;
  using Pairs = PanelTile<device_chunk>;
  /// Groups that multiply, each for 64 channels. One group more copies.
  static constexpr int groups = d_k / 64;
  static constexpr int threads = (groups + 1) * group_threads;
  static constexpr int warps = 4 * groups;  ///< Of the groups that multiply.
  static constexpr bool d_o_has_room = Values::bytes >= 2 * Pairs::bytes;
  static constexpr int k_at = Keys::bytes, d_o_at = 2 * Keys::bytes, missing_at = d_o_at + Values::bytes,
                       z_at = missing_at + Values::bytes, slot_bytes = z_at + Values::bytes;
  static constexpr int state_at = 2 * slot_bytes, gradient_at = state_at + State::bytes;
  static constexpr int pairs_at = gradient_at + State::bytes;
  static constexpr int floats_at = pairs_at + (d_o_has_room ? 0 : 2 * Pairs::bytes);
  static constexpr int shared_bytes = floats_at + 4 * ((5 + 2 * groups) * device_chunk + warps);
  static_assert(shared_bytes <= 227 * 1024);

  __device__ static char* slot(int step) { return shared_space() + (step & 1) * slot_bytes; }
  __device__ static Keys q(int step) { return {slot(step)}; }
  __device__ static Keys k(int step) { return {slot(step) + k_at}; }
  __device__ static Values d_o(int step) { return {slot(step) + d_o_at}; }
  __device__ static Values missing(int step) { return {slot(step) + missing_at}; }
  __device__ static Values z(int step) { return {slot(step) + z_at}; }
  __device__ static State state() { return {shared_space() + state_at}; }
  __device__ static State gradient() { return {shared_space() + gradient_at}; }
  __device__ static Pairs d_queries(int step) {
    return {d_o_has_room ? d_o(step).memory : shared_space() + pairs_at};
  }
  __device__ static Pairs d_keys(int step) { return {d_queries(step).memory + Pairs::bytes}; }

  /// Log decay b [64] of every token of a step's chunk.
  __device__ static float* sums(int step) { return floats() + (step & 1) * device_chunk; }
  __device__ static float* beta(int step) { return floats() + (2 + (step & 1)) * device_chunk; }
  __device__ static float* own() { return floats() + 4 * device_chunk; }
  /// The terms [64] of dg that a group adds for pairs that pass the gates up to their later token,
  /// without what a key gives D.
  __device__ static float* terms(int group) { return floats() + (5 + group) * device_chunk; }
  /// What each key gives D [64], in a group's channels.
  __device__ static float* leaving(int group) { return terms(groups + group); }
  /// Parts of <S, D>, one of each warp that multiplies.
  __device__ static float* passing() { return terms(2 * groups); }

  /// Waits for the other warps of this group.
  __device__ static GroupBarrier own_group() { return {1 + group(), group_threads}; }
  __device__ static GroupBarrier multiplying() { return {4, groups * group_threads}; }
  __device__ static GroupBarrier tokens_there() { return {5, threads}; }
  __device__ static GroupBarrier states_there() { return {6, threads}; }
  __device__ static GroupBarrier states_read() { return {7, threads}; }
  __device__ static GroupBarrier chunk_done() { return {8, threads}; }

 private:
  __device__ static float* floats() { return reinterpret_cast<float*>(shared_space() + floats_at); }
};

}  // namespace baton
