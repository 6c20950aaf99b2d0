// SPDX-License-Identifier: Apache-2.0
// dg of a gate a head: the terms of dg summed over channels, then over tokens.
//
//   dg_i = sum over c of R_c + sum over u >= i of sum over c of T_uc
//
// Every warp sums over its 16 channels, and one warp over the warps and the tokens.
#pragma once

#include "sp_methods/kernels/device/gla/groups/gradient_room.cuh"

namespace baton {

/// Adds sums of lanes that are `apart` apart, of which each keeps `half`: the later ones where its
/// number has the bit.
template <int half, int count>
__device__ inline void halve(float (&sums)[count], int apart) {
  const bool later = (lane() & apart) != 0;
#pragma unroll
  for (int i = 0; i < half; ++i) {
    const float own = later ? sums[half + i] : sums[i], other = later ? sums[i] : sums[half + i];
    sums[i] = own + __shfl_xor_sync(0xffffffffU, other, apart);
  }
}

/// Puts this warp's sums over channels of T = `terms` and R = `right` where sum_scalar_gate finds
/// them.
template <class Room>
__device__ inline void put_sums_of_channels(int step, const GroupSums<device_chunk>& terms, float2 right) {
  constexpr int pairs = device_chunk / 8;
  float sums[2 * pairs];  // of tokens 8 n + 2 b and the next one in lane 4 a + b
#pragma unroll
  for (int i = 0; i < 2 * pairs; ++i)
    sums[i] = terms.c[4 * (i / 2) + i % 2] + terms.c[4 * (i / 2) + 2 + i % 2];
  if ((lane() & 3) == 3) sums[2 * pairs - 1] += right.x + right.y;  // which every token's sum has
  halve<8>(sums, 16), halve<4>(sums, 8), halve<2>(sums, 4);
  const int n = (lane() & 16) / 4 + (lane() & 8) / 4 + (lane() & 4) / 4;
  float* const into = Room::terms(step) + warp() * device_chunk + 8 * n + 2 * (lane() & 3);
  *reinterpret_cast<float2*>(into) = {sums[0], sums[1]};
}

/// Writes dg of a chunk, by one warp.
template <class Room>
__device__ inline void sum_scalar_gate(int step, const HeadRows<Bf16>& dg) {
  float2 sums{0.0F, 0.0F};
#pragma unroll
  for (int part = 0; part < 4 * Room::groups; ++part)
    sums = sums + *reinterpret_cast<const float2*>(Room::terms(step) + part * device_chunk + 2 * lane());
  const float own = sums.x + sums.y;
  float all = own;  // of this lane and those after it
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const float more = __shfl_down_sync(0xffffffffU, all, apart);
    if (lane() + apart < 32) all += more;
  }
  const float second = all - own + sums.y;
  const int token = 2 * lane();
  if (token < dg.count) *dg.row(token) = __float2bfloat16(second + sums.x);
  if (token + 1 < dg.count) *dg.row(token + 1) = __float2bfloat16(second);
}

}  // namespace baton
