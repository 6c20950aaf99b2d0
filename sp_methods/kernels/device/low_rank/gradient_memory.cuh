// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes the gradients of a chunk under a low-rank rule.
//
//   room                     first            then
//   dO, Z, U, V              dO, Z, U, V      gates, sums of dg
//   four of [64, 64]         two of scores    gradients of scores
//   S, D                     S, D             b of every token and channel
//
// At d_k = d_v = 128: 226 KiB, one block a multiprocessor.
#pragma once

#include "sp_methods/kernels/device/low_rank/layer.cuh"
#include "sp_methods/kernels/device/tile/wgmma.cuh"

namespace baton {

template <int d_k, int d_v, GateKind kind>
struct LowRankGradientMemory {
  using Keys = PanelTile<d_k>;
  using Values = PanelTile<d_v>;
  using Pairs = PanelTile<device_chunk>;
  using State = PanelTile<d_k, d_v>;
  using Gates = GateTile<kind, d_k>;
  using GateRows = typename Gates::Tile;
  using Floats = FloatTile<d_k>;
  /// Sums over channels that dg has besides terms of tokens.
  static constexpr int edge_sums = 12;
  static constexpr int d_o_at = 4 * Keys::bytes, pairs_at = d_o_at + 4 * Values::bytes;
  static constexpr int edges_at = d_o_at + Gates::bytes(), totals_at = edges_at + 4 * edge_sums * d_k;
  static constexpr int state_at = pairs_at + 4 * Pairs::bytes;
  static constexpr int floats_at = state_at + std::max(2 * State::bytes, Floats::bytes(device_chunk));
  static constexpr int shared_bytes = floats_at + 4 * 6 * d_k;
  static_assert(totals_at + 4 * 4 * std::max(d_k, device_chunk) <= pairs_at && shared_bytes <= 227 * 1024);

  __device__ static Keys q() { return {shared_space()}; }
  __device__ static Keys reads() { return {shared_space() + Keys::bytes}; }
  __device__ static Keys keys() { return {shared_space() + 2 * Keys::bytes}; }
  __device__ static Keys writes() { return {shared_space() + 3 * Keys::bytes}; }
  __device__ static Values d_o() { return {shared_space() + d_o_at}; }
  __device__ static Values z() { return {shared_space() + d_o_at + Values::bytes}; }
  __device__ static Values read() { return {shared_space() + d_o_at + 2 * Values::bytes}; }
  __device__ static Values values() { return {shared_space() + d_o_at + 3 * Values::bytes}; }
  __device__ static Pairs pairs(int i) { return {shared_space() + pairs_at + i * Pairs::bytes}; }
  __device__ static Pairs query_values() { return pairs(1); }
  __device__ static Pairs read_values() { return pairs(2); }
  // Gradients of scores.
  __device__ static Pairs d_query_writes() { return pairs(0); }
  __device__ static Pairs d_query_values() { return pairs(1); }
  __device__ static Pairs d_read_writes() { return pairs(2); }
  __device__ static Pairs d_read_values() { return pairs(3); }
  __device__ static State state() { return {shared_space() + state_at}; }
  __device__ static State gradient() { return {shared_space() + state_at + State::bytes}; }

  __device__ static Gates gates() { return {shared_space() + d_o_at}; }
  __device__ static float* edges() { return reinterpret_cast<float*>(shared_space() + edges_at); }
  __device__ static float* totals() { return reinterpret_cast<float*>(shared_space() + totals_at); }
  __device__ static Floats sums_of_gates() { return {shared_space() + state_at}; }
  /// Terms of dg from the reads of token 16 i.
  __device__ static float* first_reads(int i) { return end() + (1 + i) * d_k; }

  /// The log decays [d_k] that q' and r' are relative to.
  __device__ static float* start() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  /// The log decays [d_k] that k" and b" are relative to.
  __device__ static float* end() { return start() + d_k; }
};

}  // namespace baton
