// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/timing.hpp"

namespace baton {
namespace {

constexpr std::uint64_t host_limit = 20'000'000;      // nanoseconds
constexpr std::uint64_t ranks_limit = 5'000'000'000;  // nanoseconds
constexpr int most_ranks = 1024;

/// The flag that `from` raises in phase 0 or 1, in the memory of the rank that polls it.
__device__ unsigned* flag_in(std::byte* memory, int phase, int ranks, int from) {
  return reinterpret_cast<unsigned*>(memory) + (phase * ranks + from) * flag_words;
}

__global__ void __launch_bounds__(most_ranks)
    start_barrier_kernel(const unsigned* go, int* missing, unsigned* late, unsigned round,
                         std::byte* const* memory, int rank, int ranks) {
  const int other = static_cast<int>(threadIdx.x);
  if (other == 0 && !await_flag(go, round, host_limit)) ++*late;
  __syncthreads();
  for (int phase = 0; phase < 2 && memory != nullptr; ++phase) {
    bool timed_out = false;
    if (other < ranks) {
      raise_flag(flag_in(memory[other], phase, ranks, rank), round);
      timed_out = !await_flag(flag_in(memory[rank], phase, ranks, other), round, ranks_limit);
      if (timed_out) *missing = 1 + other;
    }
    if (__syncthreads_or(timed_out)) return;  // one time limit is enough: the round may time out as well
  }
}

constexpr std::size_t push_bytes = std::size_t{64} << 20;
constexpr int pushes = 20;
constexpr int round_trips = 2000;
constexpr int push_threads = 512;
constexpr std::uint64_t ping_pong_limit = 2'000'000'000;  // nanoseconds

/// Counts two words up from `first` for `trips` round trips. The rank that `serves` stores its word
/// first and then waits; the other rank answers. Volatile accesses are relaxed: nothing else is
/// published, and the fence of a release would take longer than the word.
__global__ void ping_pong_kernel(volatile unsigned* theirs, const volatile unsigned* own, unsigned first,
                                 int trips, bool serves) {
  constexpr unsigned seldom = 1024;  // looks between two at the clock, which takes longer than a look
  const std::uint64_t start = device_nanoseconds();
  for (unsigned count = first; count != first + trips; ++count) {
    if (serves) *theirs = count;
    for (unsigned looks = 1; static_cast<int>(*own - count) < 0; ++looks)
      if (looks % seldom == 0 && device_nanoseconds() - start > ping_pong_limit) return;
    if (!serves) *theirs = count;
  }
}

__global__ void __launch_bounds__(push_threads)
    push_kernel(float4* into, const float4* from, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * push_threads;
  for (std::size_t i = std::size_t{blockIdx.x} * push_threads + threadIdx.x; i < count; i += stride)
    into[i] = from[i];
}

class LinkProbe {
 public:
  LinkProbe(const CudaRanks& ranks, cudaStream_t stream, double floor_seconds)
      : ranks_(ranks),
        stream_(stream),
        floor_seconds_(floor_seconds),
        memory_(ranks, flag_bytes + push_bytes) {}

  /// Seconds that a word takes one way between rank `low` and the next. Both ranks measure; other
  /// ranks return 0.
  double alpha(int low) {
    const bool serves = ranks_.rank() == low;
    if (!serves && ranks_.rank() != low + 1) return 0;
    const int other = serves ? low + 1 : low;
    // Two words a rank: one from each neighbour.
    auto* theirs = reinterpret_cast<unsigned*>(memory_.of(other)) + (serves ? 0 : flag_words);
    auto* own = reinterpret_cast<unsigned*>(memory_.own()) + (serves ? flag_words : 0);
    unsigned next = 1;
    const auto play = [&](int trips) {
      const double seconds = stopwatch_.time(
          stream_, [&] { ping_pong_kernel<<<1, 1, 0, stream_>>>(theirs, own, next, trips, serves); });
      next += trips;
      return seconds;
    };
    play(10);
    return play(round_trips) / (2 * round_trips);
  }

  /// Bytes a second that rank `low` stores into the memory of the next rank. Rank `low` measures;
  /// other ranks return 0.
  double beta(int low) {
    if (ranks_.rank() != low) return 0;
    auto* into = reinterpret_cast<float4*>(memory_.of(low + 1) + flag_bytes);
    const auto* from = reinterpret_cast<const float4*>(memory_.own() + flag_bytes);
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < pushes; ++i)
      least = std::min(least, stopwatch_.time(stream_, [&] {
        push_kernel<<<2 * multiprocessors(), push_threads, 0, stream_>>>(into, from,
                                                                         push_bytes / sizeof(float4));
      }));
    return push_bytes / std::max(least - floor_seconds_, 1e-9);
  }

 private:
  static constexpr std::size_t flag_bytes = 4096;

  const CudaRanks& ranks_;
  cudaStream_t stream_;
  double floor_seconds_;
  SharedBuffer memory_;
  Stopwatch stopwatch_;
};

/// The median over pairs of the values that their lower ranks measured.
double median_over_pairs(const CudaRanks& ranks, const std::function<double(int)>& measure) {
  constexpr int most_pairs = 8;
  const int pairs = ranks.size() - 1, count = std::min(pairs, most_pairs);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const int low = i * pairs / count;
    ranks.barrier();
    values.push_back(ranks.gather(measure(low))[low]);
  }
  return median(std::move(values));
}

}  // namespace

StartBarrier::StartBarrier(const CudaRanks& ranks) : ranks_(ranks) {
  if (ranks.size() <= most_ranks && !lacks_peer_access(ranks))
    flags_ = std::make_unique<SharedBuffer>(ranks, 2 * ranks.size() * flag_words * sizeof(unsigned));
  void* memory = nullptr;
  cuda(cudaMallocHost(&memory, sizeof(Word)));
  word_ = new (memory) Word;
}

StartBarrier::~StartBarrier() {
  // Freeing waits for the device, which may wait for a failed rank for ever.
  if (std::uncaught_exceptions() == 0) cudaFreeHost(word_);
}

void StartBarrier::enqueue(cudaStream_t stream) {
  ++round_;
  const int threads = flags_ ? (ranks_.size() + 31) / 32 * 32 : 32;
  start_barrier_kernel<<<1, threads, 0, stream>>>(&word_->go, &word_->missing, &word_->late, round_,
                                                  flags_ ? flags_->on_device() : nullptr, ranks_.rank(),
                                                  ranks_.size());
  cuda_launched();
}

void StartBarrier::release() { std::atomic_ref(word_->go).store(round_, std::memory_order_release); }

unsigned StartBarrier::late_starts() const { return std::atomic_ref(word_->late).load(); }

std::string StartBarrier::fault() const {
  if (word_->missing == 0) return {};
  return "timed out after " + std::to_string(ranks_limit / 1'000'000) + " ms waiting for rank " +
         std::to_string(word_->missing - 1) + " to start a round";
}

void measure_link_limits(const CudaRanks& ranks, cudaStream_t stream, HardwareLimits& limits) {
  LinkProbe probe(ranks, stream, limits.floor_seconds);
  limits.alpha_seconds = median_over_pairs(ranks, [&](int low) { return probe.alpha(low); });
  limits.beta = median_over_pairs(ranks, [&](int low) { return probe.beta(low); });
}

}  // namespace baton
