// SPDX-License-Identifier: Apache-2.0
// Flags between GPUs, as device code sees them: one 32-bit word in a 128-byte line of its own, written by one GPU and
// polled by another, which owns the memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace baton {

/// Words from one flag to the next, so that no two share a line.
inline constexpr std::size_t flag_words = 32;

/// Stores `value` after all that this thread, and those it has synchronised with, have stored.
__device__ inline void raise_flag(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

/// The flag's value; what was stored before it was raised to that is seen by later loads.
__device__ inline unsigned look_at_flag(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// Nanoseconds on the GPU's own clock of the day. Ticks coarsely: for time limits only.
__device__ inline std::uint64_t device_nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// Polls until the flag has reached `value`, which counts up and may wrap, or `limit` nanoseconds have gone by; true if
/// it has.
__device__ inline bool await_flag(const unsigned* flag, unsigned value, std::uint64_t limit) {
  const std::uint64_t start = device_nanoseconds();
  while (static_cast<int>(look_at_flag(flag) - value) < 0)
    if (device_nanoseconds() - start > limit) return false;
  return true;
}

}  // namespace baton
