// SPDX-License-Identifier: Apache-2.0
// Packets: 16 bytes that are stored into another GPU's memory in one piece and carry their own flag.
//
// A slot of an inbox holds the word `nothing` last until a packet has come. No packet ends with it: it is a NaN that
// arithmetic does not make, and a producer whose data holds it sends another NaN instead. One 128-bit access is one
// access to the memory model too, so whoever sees the last word sees the others.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>

namespace baton {

inline constexpr int packet_bytes = 16;

/// What the last word of a slot holds while it is empty; as two bf16 it is two NaNs.
inline constexpr unsigned nothing = 0xFFFAFFFA;

__device__ inline bool is_nothing(const uint4& packet) { return packet.w == nothing; }

/// A 128-bit store that other GPUs see whole.
__device__ inline void store_packet(std::byte* into, const uint4& packet) {
  asm volatile(
      "{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
      "mov.b64 lo, {%1, %2};\n\tmov.b64 hi, {%3, %4};\n\tmov.b128 all, {lo, hi};\n\t"
      "st.relaxed.sys.global.b128 [%0], all;\n\t}" ::"l"(into),
      "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
      : "memory");
}

/// A 128-bit load of what another GPU may be storing.
__device__ inline uint4 load_packet(const std::byte* from) {
  uint4 packet;
  asm volatile(
      "{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
      "ld.relaxed.sys.global.b128 all, [%4];\n\tmov.b128 {lo, hi}, all;\n\t"
      "mov.b64 {%0, %1}, lo;\n\tmov.b64 {%2, %3}, hi;\n\t}"
      : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
      : "l"(from)
      : "memory");
  return packet;
}

__device__ inline void empty_slot(std::byte* slot) {
  store_packet(slot, {nothing, nothing, nothing, nothing});
}

/// The elements of one packet, in registers.
template <int count>
struct Elements {
  float v[count];
};

/// Four f32, bit for bit but for `nothing` itself.
struct WireF32 {
  static constexpr int elements = 4;

  __device__ static uint4 pack(const Elements<4>& x) {
    const unsigned last = __float_as_uint(x.v[3]);
    return {__float_as_uint(x.v[0]), __float_as_uint(x.v[1]), __float_as_uint(x.v[2]),
            last == nothing ? 0x7FFFFFFFu : last};
  }
  __device__ static Elements<4> unpack(const uint4& packet) {
    return {__uint_as_float(packet.x), __uint_as_float(packet.y), __uint_as_float(packet.z),
            __uint_as_float(packet.w)};
  }
};

/// Eight bf16, rounded to nearest even. Rounding makes one NaN only, which is not in `nothing`.
struct WireBf16 {
  static constexpr int elements = 8;

  __device__ static uint4 pack(const Elements<8>& x) {
    return {pair(x.v[0], x.v[1]), pair(x.v[2], x.v[3]), pair(x.v[4], x.v[5]), pair(x.v[6], x.v[7])};
  }
  __device__ static Elements<8> unpack(const uint4& packet) {
    return {low(packet.x), high(packet.x), low(packet.y), high(packet.y),
            low(packet.z), high(packet.z), low(packet.w), high(packet.w)};
  }

 private:
  __device__ static unsigned pair(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned&>(both);
  }
  __device__ static float low(unsigned pair) { return __uint_as_float(pair << 16); }
  __device__ static float high(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000u); }
};

/// `count` elements from memory that this kernel may have written, zeros behind the `n` that there are. `whole` promises
/// all of them, 16-byte aligned.
template <int count>
__device__ inline Elements<count> load_elements(const float* from, unsigned n, bool whole) {
  Elements<count> x;
  if (whole && n >= count) {
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const float4 four = __ldcg(reinterpret_cast<const float4*>(from + i));
      x.v[i] = four.x, x.v[i + 1] = four.y, x.v[i + 2] = four.z, x.v[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) x.v[i] = i < n ? __ldcg(from + i) : 0.0f;
  }
  return x;
}

template <int count>
__device__ inline void store_elements(float* into, const Elements<count>& x, unsigned n, bool whole) {
  if (whole && n >= count) {
#pragma unroll
    for (int i = 0; i < count; i += 4)
      *reinterpret_cast<float4*>(into + i) = {x.v[i], x.v[i + 1], x.v[i + 2], x.v[i + 3]};
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (i < n) into[i] = x.v[i];
  }
}

}  // namespace baton
