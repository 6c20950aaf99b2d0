// SPDX-License-Identifier: Apache-2.0
// The decays of one chunk under a delta rule, as its record and its gradients both need them.
//
//   a gate a channel:      q' = s q e^{b-r}, k' = k e^{b-r}, k" = k e^{r-b}, r in the middle;
//                          where that is too strong q' = s q e^b, k' = k e^b, k" = k e^{all-b}
//   a gate a head, none:   scores of plain rows are multiplied by e^{b_i - b_j}, never above 1
//
// Cost: one exponential a number of q', k' and k", or one a pair.
#pragma once

#include "sp_methods/kernels/device/gla/scores.cuh"

namespace baton {

/// Factor e^{b - r} of keys as the later one of a pair.
__device__ inline DecayFactor in_factor(float2 r) { return {log2_e, {-log2_e * r.x, -log2_e * r.y}}; }

/// A chunk's tiles while they are scaled.
template <int d_k>
struct ScaledChunk {
  Bf16Tile<d_k> q, keys_in, keys_out;
  GateTile<GateKind::vector, d_k> gates;
};

/// Scales plain tiles by gates a channel, and returns true if the chunk is strong. All threads call
/// it, behind a barrier and before one; each walk calls decays(walk, strong).
template <int d_k, class Decays>
__device__ inline bool scale_by_channel(const ScaledChunk<d_k>& x, Decays decays) {
  using Walk = GateWalk<GateKind::vector, d_k>;
  const Walk walk(x.gates);
  const bool strong = __syncthreads_or(walk.is_strong());
  if (!Walk::takes_part()) return strong;
  const float2 start = strong ? float2{0.0F, 0.0F} : walk.middle, end = strong ? walk.all : walk.middle;
  walk.scale(x.q, query_factor<d_k>(start), x.keys_out, key_factor(end));
  walk.scale(x.keys_in, in_factor(start));
  decays(walk, strong);
  return strong;
}

/// Sets b [64] for one gate a head, and returns that of the lane's tokens. One warp calls it, and
/// each lane brings the gates of two neighbouring tokens.
__device__ inline float2 sum_gates_of_head(float* b, float2 gate) {
  float sum = gate.x + gate.y;
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const float earlier = __shfl_up_sync(0xffffffffU, sum, apart);
    if (lane() >= apart) sum += earlier;
  }
  const float2 sums{sum - gate.y, sum};
  *reinterpret_cast<float2*>(b + 2 * lane()) = sums;
  return sums;
}
template <GateKind kind, int d_k>
__device__ inline void sum_gates_of_head(float* b, const GateTile<kind, d_k>& gates) {
  sum_gates_of_head(b, {gates.pair(0, 2 * lane()).x, gates.pair(0, 2 * lane() + 1).x});
}

}  // namespace baton
