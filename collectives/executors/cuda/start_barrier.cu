// SPDX-License-Identifier: Apache-2.0
// The start kernel.
#include <atomic>
#include <exception>
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/cuda/gpu.cuh"
#include "collectives/executors/cuda/start_barrier.cuh"

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
    start_line_kernel(const unsigned* go, int* missing, unsigned round, std::byte* const* memory, int rank,
                      int ranks) {
  const int other = static_cast<int>(threadIdx.x);
  if (other == 0) await_flag(go, round, host_limit);
  __syncthreads();
  for (int phase = 0; phase < 2 && memory != nullptr; ++phase) {
    bool in_vain = false;
    if (other < ranks) {
      raise_flag(flag_in(memory[other], phase, ranks, rank), round);
      in_vain = !await_flag(flag_in(memory[rank], phase, ranks, other), round, ranks_limit);
      if (in_vain) *missing = 1 + other;
    }
    if (__syncthreads_or(in_vain)) return;  // once is enough: the round behind it may wait in vain as well
  }
}

}  // namespace

StartLine::StartLine(const CudaRanks& ranks) : ranks_(ranks) {
  if (ranks.size() <= most_ranks && lacks_peer_access(ranks).empty())
    flags_ = std::make_unique<SharedBuffer>(ranks, 2 * ranks.size() * flag_words * sizeof(unsigned));
  void* memory = nullptr;
  cuda(cudaMallocHost(&memory, sizeof(Word)));
  word_ = new (memory) Word;
}

StartLine::~StartLine() {
  // Freeing waits for the device, which may never come to an end when another rank has failed.
  if (std::uncaught_exceptions() == 0) cudaFreeHost(word_);
}

void StartLine::enqueue(cudaStream_t stream) {
  ++round_;
  const int threads = flags_ ? (ranks_.size() + 31) / 32 * 32 : 32;
  start_line_kernel<<<1, threads, 0, stream>>>(&word_->go, &word_->missing, round_,
                                               flags_ ? flags_->on_device() : nullptr, ranks_.rank(),
                                               ranks_.size());
  cuda_launched();
}

void StartLine::release() { std::atomic_ref(word_->go).store(round_, std::memory_order_release); }

std::string StartLine::fault() const {
  if (word_->missing == 0) return {};
  return "waited " + std::to_string(ranks_limit / 1'000'000) + " ms in vain for rank " +
         std::to_string(word_->missing - 1) + " to start a round";
}

}  // namespace baton
