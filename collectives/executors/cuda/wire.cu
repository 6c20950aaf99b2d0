// SPDX-License-Identifier: Apache-2.0
// Flag ping-pong and push bandwidth.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/cuda/shared_buffer.cuh"
#include "collectives/executors/cuda/stopwatch.cuh"
#include "collectives/executors/cuda/wire.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

constexpr std::size_t push_bytes = std::size_t{64} << 20;
constexpr int pushes = 20;
constexpr int round_trips = 2000;
constexpr int threads = 512;
constexpr std::uint64_t limit = 2'000'000'000;  // nanoseconds

/// Counts from `first` to `first + trips`; the one that serves raises first and then waits, the other answers.
__global__ void ping_pong_kernel(unsigned* theirs, unsigned* own, unsigned first, int trips, bool serves) {
  for (unsigned count = first; count != first + trips; ++count) {
    if (serves) raise_flag(theirs, count);
    if (!await_flag(own, count, limit)) return;
    if (!serves) raise_flag(theirs, count);
  }
}

__global__ void __launch_bounds__(threads) push_kernel(float4* into, const float4* from, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride)
    into[i] = from[i];
}

class Prober {
 public:
  Prober(const CudaRanks& ranks, cudaStream_t stream, double floor_seconds)
      : ranks_(ranks),
        stream_(stream),
        floor_seconds_(floor_seconds),
        memory_(ranks, flag_bytes + push_bytes) {
    int gpu = 0;
    cuda(cudaGetDevice(&gpu));
    cuda(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, gpu));
  }

  /// Both ranks of the pair call it; others get 0.
  double alpha(int low) {
    const bool serves = ranks_.rank() == low;
    if (!serves && ranks_.rank() != low + 1) return 0;
    const int other = serves ? low + 1 : low;
    // Two flags a rank: one from each neighbour.
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

  /// The lower rank of the pair calls it; others get 0.
  double beta(int low) {
    if (ranks_.rank() != low) return 0;
    auto* into = reinterpret_cast<float4*>(memory_.of(low + 1) + flag_bytes);
    const auto* from = reinterpret_cast<const float4*>(memory_.own() + flag_bytes);
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < pushes; ++i)
      least = std::min(least, stopwatch_.time(stream_, [&] {
        push_kernel<<<processors_ * 2, threads, 0, stream_>>>(into, from, push_bytes / sizeof(float4));
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
  int processors_ = 0;
};

/// The median over pairs of what their lower ranks measured.
double median_over_pairs(const CudaRanks& ranks, const std::function<double(int)>& measure) {
  constexpr int most_pairs = 8;
  const int pairs = ranks.size() - 1, count = std::min(pairs, most_pairs);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const int low = i * pairs / count;
    ranks.barrier();
    values.push_back(ranks.gather(measure(low))[low]);
  }
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace

LinkLimits measure_link_limits(const CudaRanks& ranks, cudaStream_t stream, double floor_seconds) {
  Prober prober(ranks, stream, floor_seconds);
  LinkLimits limits;
  limits.alpha_seconds = median_over_pairs(ranks, [&](int low) { return prober.alpha(low); });
  limits.beta = median_over_pairs(ranks, [&](int low) { return prober.beta(low); });
  return limits;
}

}  // namespace baton
