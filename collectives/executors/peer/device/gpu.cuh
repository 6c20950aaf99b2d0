// SPDX-License-Identifier: Apache-2.0
// The machine that peer kernels run on: memory, flags, barriers and threads of a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/peer/device/round.cuh"

namespace baton {

struct Gpu {
  __device__ static unsigned thread() { return threadIdx.x; }
  __device__ static unsigned threads() { return blockDim.x; }
  __device__ static unsigned block() { return blockIdx.x; }
  __device__ static unsigned blocks() { return gridDim.x; }
  __device__ static int threads_of_warp() { return warpSize; }

  /// A barrier of the block.
  __device__ static void sync() { __syncthreads(); }
  /// A barrier of the block, which returns true on all threads if `mine` is true on one.
  __device__ static bool sync_or(bool mine) { return __syncthreads_or(mine) != 0; }
  /// A word that the threads of a block share.
  __device__ static unsigned& shared_word() {
    __shared__ unsigned word;
    return word;
  }

  __device__ static void raise_flag(unsigned* flag, unsigned value) { baton::raise_flag(flag, value); }
  __device__ static unsigned load_flag(const unsigned* flag) { return baton::load_flag(flag); }
  /// Reads a word by a volatile access, which is neither cached nor optimised away.
  template <class Word>
  __device__ static Word peek(const Word* word) {
    return *static_cast<const volatile Word*>(word);
  }
  /// Writes a word by a volatile access, which is neither cached nor optimised away.
  __device__ static void poke(unsigned* word, unsigned value) {
    *static_cast<volatile unsigned*>(word) = value;
  }
  __device__ static unsigned exchange(unsigned* word, unsigned value) { return atomicExch(word, value); }
  __device__ static unsigned long long add(unsigned long long* word, unsigned value) {
    return atomicAdd(word, value);
  }
  __device__ static void fence() { __threadfence(); }
  __device__ static void fence_system() { __threadfence_system(); }
  __device__ static std::uint64_t nanoseconds() { return device_nanoseconds(); }

  __device__ static unsigned min(unsigned a, unsigned b) { return ::min(a, b); }
  __device__ static float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  __device__ static unsigned bits(float value) { return __float_as_uint(value); }
  __device__ static float value(unsigned bits) { return __uint_as_float(bits); }
  /// Two f32 as bf16 in one word, rounded to nearest even.
  __device__ static unsigned bf16_pair(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned&>(both);
  }

  /// Stores 128 bits, which other GPUs see as a whole.
  __device__ static void store_packet(std::byte* into, const Packet& packet) {
    asm volatile(
        "{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
        "mov.b64 lo, {%1, %2};\n\tmov.b64 hi, {%3, %4};\n\tmov.b128 all, {lo, hi};\n\t"
        "st.relaxed.sys.global.b128 [%0], all;\n\t}" ::"l"(into),
        "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
        : "memory");
  }

  /// Loads 128 bits of a slot that another GPU may be storing to.
  __device__ static Packet load_packet(const std::byte* from) {
    Packet packet;
    asm volatile(
        "{\n\t.reg .b64 lo, hi;\n\t.reg .b128 all;\n\t"
        "ld.relaxed.sys.global.b128 all, [%4];\n\tmov.b128 {lo, hi}, all;\n\t"
        "mov.b64 {%0, %1}, lo;\n\tmov.b64 {%2, %3}, hi;\n\t}"
        : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
        : "l"(from)
        : "memory");
    return packet;
  }

  /// Loads an element that this kernel may have written.
  __device__ static float load(const float* from) { return __ldcg(from); }

  /// Loads `count` elements that this kernel may have written; zeros behind the first `n`. `whole`
  /// promises that `from` is 16-byte aligned.
  template <int count>
  __device__ static Elements<count> load_elements(const float* from, unsigned n, bool whole) {
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
  __device__ static void store_elements(float* into, const Elements<count>& x, unsigned n, bool whole) {
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
};

}  // namespace baton
