// SPDX-License-Identifier: Apache-2.0
// Flags between GPUs, the common start of a round that is made of them, and the limits of a link.
//
// A flag is one 32-bit word in a 128-byte line of its own, written by one GPU and polled by
// another, which owns the memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/executor.hpp"

namespace baton {

/// Words from one flag to the next, so that no two share a line.
inline constexpr std::size_t flag_words = 32;

/// Stores `value` after everything that this thread, and those it has synchronised with, have
/// stored.
__device__ inline void raise_flag(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

/// The flag's value. Later loads see everything that was stored before the flag got it.
__device__ inline unsigned load_flag(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// Nanoseconds of the GPU's wall clock. It ticks coarsely, so it serves for time limits only.
__device__ inline std::uint64_t device_nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// Polls until the flag has reached `value`, which counts up and may wrap, for at most `limit`
/// nanoseconds; true if it has.
__device__ inline bool await_flag(const unsigned* flag, unsigned value, std::uint64_t limit) {
  const std::uint64_t start = device_nanoseconds();
  while (static_cast<int>(load_flag(flag) - value) < 0)
    if (device_nanoseconds() - start > limit) return false;
  return true;
}

/// A barrier of all GPUs before each round: a kernel of one block that
///
///   waits until the host has enqueued the round, or for 20 ms if the queue is too short for it
///   tells all GPUs that this one is here and waits for all of them, by flags in peer memory
///   does so once more, since the last GPU leaves the first barrier one flag latency early
///
/// It costs two flag latencies. Where the GPUs do not reach one another, it only waits for the
/// host, and the start is as even as the ranks' last barrier.
class StartBarrier {
 public:
  /// Makes the barrier of `ranks`, which must outlive it. Collective.
  explicit StartBarrier(const CudaRanks& ranks);
  ~StartBarrier();
  StartBarrier(const StartBarrier&) = delete;
  StartBarrier& operator=(const StartBarrier&) = delete;

  /// True if the GPUs synchronize by flags in peer memory.
  bool is_on_device() const { return flags_ != nullptr; }

  /// Makes what is enqueued in `stream` behind it start on all ranks together, once each has called
  /// `release`. Every rank calls it equally often.
  void enqueue(cudaStream_t stream);
  /// Releases the enqueued round. To be called when the host has enqueued all of it.
  void release();
  /// Number of rounds that began before their host had released them, so that their times include
  /// the host's. To be called after the stream has ended.
  unsigned late_starts() const;
  /// The rank that this one timed out on, in words; empty if there is none. To be called after the
  /// stream has ended.
  std::string fault() const;

 private:
  /// Host memory that the GPU reads and writes.
  struct Word {
    unsigned go = 0;  // the last round that the host released
    int missing = 0;  // 1 + the rank that did not come
    unsigned late = 0;
  };

  const CudaRanks& ranks_;
  std::unique_ptr<SharedBuffer> flags_;
  Word* word_ = nullptr;
  unsigned round_ = 0;
};

/// Measures the latency of a word and the rate of stores from one GPU to the next, without any
/// library, into `limits`.
///
/// Both are the median over pairs of neighbours, at most 8, measured one at a time. Alpha is half
/// the round trip of a word that one GPU stores and the other polls, the mean of 2000. Beta is the
/// best of 20 pushes of 64 MiB by all multiprocessors, less `limits.floor_seconds`. Collective;
/// needs that lacks_peer_access refused nothing, and at least two ranks.
void measure_link_limits(const CudaRanks& ranks, cudaStream_t stream, HardwareLimits& limits);

}  // namespace baton
