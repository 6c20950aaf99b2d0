// SPDX-License-Identifier: Apache-2.0
// Eight neighbouring elements at a time, 16 bytes of bf16, as numbers in registers.
#pragma once

#include <cstdint>

#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

/// Neighbouring elements of a row that a thread has at a time: 16 bytes of bf16.
inline constexpr int pack = 8;

/// The numbers of a pack.
struct Eight {
  float x[pack];
};

__device__ inline Eight unpacked(uint4 bits) {
  Eight all;
  const std::uint32_t pairs[]{bits.x, bits.y, bits.z, bits.w};
#pragma unroll
  for (int i = 0; i < pack / 2; ++i) {
    const float2 pair = unpacked_pair(pairs[i]);
    all.x[2 * i] = pair.x;
    all.x[2 * i + 1] = pair.y;
  }
  return all;
}

/// Loads pack number `i` of a run of elements.
__device__ inline Eight load(const Bf16* from, std::int64_t i) {
  return unpacked(reinterpret_cast<const uint4*>(from)[i]);
}
__device__ inline Eight load(const float* from, std::int64_t i) {
  const float4 a = reinterpret_cast<const float4*>(from)[2 * i],
               b = reinterpret_cast<const float4*>(from)[2 * i + 1];
  return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
}
__device__ inline void store(Bf16* into, std::int64_t i, const Eight& e) {
  store_16(reinterpret_cast<uint4*>(into) + i, {packed_pair(e.x[0], e.x[1]), packed_pair(e.x[2], e.x[3]),
                                                packed_pair(e.x[4], e.x[5]), packed_pair(e.x[6], e.x[7])});
}
__device__ inline void store(float* into, std::int64_t i, const Eight& e) {
  reinterpret_cast<float4*>(into)[2 * i] = {e.x[0], e.x[1], e.x[2], e.x[3]};
  reinterpret_cast<float4*>(into)[2 * i + 1] = {e.x[4], e.x[5], e.x[6], e.x[7]};
}

__device__ inline float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

}  // namespace baton
