// SPDX-License-Identifier: Apache-2.0
// One rank's GPU in tests of the peer executor: rounds whose inputs are made, and whose outputs are
// checked, on the GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/peer/compiler/compile.hpp"
#include "collectives/executors/peer/rounds.cuh"
#include "harness/process/world.hpp"

namespace baton {

/// The ranks of the test program.
inline const World*& the_world() {
  static const World* world = nullptr;
  return world;
}

__host__ __device__ inline unsigned hash(unsigned a, unsigned b, unsigned c) {
  unsigned x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// Contributions whose folds are exact in f32, others in each round.
__device__ inline float state_of(unsigned round, unsigned rank, unsigned i) {
  return static_cast<float>(static_cast<int>(hash(round, rank, i) % 17) - 8);
}
__device__ inline float decay_of(unsigned round, unsigned rank, unsigned row) {
  return hash(round + 7, rank, row) % 2 == 0 ? 0.5f : 1.0f;
}

static __global__ void count_round_kernel(unsigned* round) { ++*round; }

/// Up to 20 us, in a quarter of the rounds.
static __global__ void dawdle_kernel(const unsigned* round, unsigned rank) {
  const unsigned random = hash(*round, rank, 99);
  const std::uint64_t start = device_nanoseconds();
  while (random % 4 == 0 && device_nanoseconds() - start < random / 4 % 20'000) {
  }
}

static __global__ void fill_kernel(float* own, unsigned rows, unsigned row, const unsigned* round,
                                   unsigned rank) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < rows + rows * row; i += gridDim.x * blockDim.x)
    own[i] = i < rows ? decay_of(*round, rank, i) : state_of(*round, rank, i - rows);
}

/// Folds the ranks before `place` and counts the elements of `into` that differ; then wipes it.
static __global__ void check_kernel(float* into, unsigned rows, unsigned row, const unsigned* round,
                                    int place, int ranks, bool reversed, unsigned long long* wrong) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * row; i += gridDim.x * blockDim.x) {
    float prefix = 0;
    for (int at = 0; at < place; ++at) {
      const int rank = reversed ? ranks - 1 - at : at;
      prefix = decay_of(*round, rank, i / row) * prefix + state_of(*round, rank, i);
    }
    if (into[i] != prefix) atomicAdd(wrong, 1ull);
    into[i] = 0;
  }
}

/// One rank's GPU and the numbers that stay there.
class Rig {
 public:
  explicit Rig(int ranks) : ranks_(ranks) {
    take_gpu(ranks_);
    cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda(cudaMalloc(&round_, sizeof(unsigned)));
    cuda(cudaMalloc(&wrong_, sizeof *wrong_));
    cuda(cudaMemset(round_, 0, sizeof(unsigned)));
    cuda(cudaMemset(wrong_, 0, sizeof *wrong_));
    cuda(cudaDeviceSynchronize());
  }
  ~Rig() {
    cudaFree(round_);
    cudaFree(wrong_);
    cudaStreamDestroy(stream_);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const CudaRanks& ranks() const { return ranks_; }
  cudaStream_t stream() const { return stream_; }
  unsigned* round() const { return round_; }
  unsigned long long* wrong_on_device() const { return wrong_; }

  void wait() const { cuda(cudaStreamSynchronize(stream_)); }
  unsigned long long wrong() const {
    wait();
    unsigned long long count = 0;
    cuda(cudaMemcpy(&count, wrong_, sizeof count, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  CudaRanks ranks_;
  cudaStream_t stream_ = nullptr;
  unsigned* round_ = nullptr;
  unsigned long long* wrong_ = nullptr;
};

/// A prepared round of the peer executor, with its buffers.
struct PreparedRound {
  /// Exchanges that overlap compute steps run on `overlap_ctas` blocks.
  PreparedRound(const CudaRanks& ranks, PeerExchange& exchange, const std::vector<Schedule>& schedules,
                unsigned overlap_ctas)
      : memory(schedules[ranks.rank()]) {
    const Schedule& own = schedules[ranks.rank()];
    if (only_peer_native(own) != nullptr) {
      round = std::make_unique<NativeRound>(schedules, ranks.rank(), memory, exchange, ElementFormat::f32);
      return;
    }
    const PeerProgram program = compile_peer_programs(schedules, {})[ranks.rank()];
    overlaps_compute = program.overlaps_compute;
    round = std::make_unique<ScheduleRound>(own, program, memory, exchange, ElementFormat::f32, overlap_ctas);
  }

  DeviceMemory memory;
  std::unique_ptr<Round> round;
  bool overlaps_compute = false;
};

/// A scan that makes its inputs and checks its outputs on the GPU in every round.
class Scan {
 public:
  Scan(Rig& rig, const char* name, const Shape& shape, Direction direction, double limit_seconds = 5)
      : rig_(rig),
        shape_(shape),
        reversed_(direction == Direction::reverse),
        exchange_(rig.ranks(), limit_seconds) {
    const int ranks = rig.ranks().size();
    schedules_ =
        build_all(find_collective(name), shape, {.ranks = ranks, .blocks = 3, .direction = direction});
    prepared_ = std::make_unique<PreparedRound>(rig.ranks(), exchange_, schedules_, 4);
  }

  void enqueue() {
    const int rank = rig_.ranks().rank(), ranks = rig_.ranks().size();
    const auto rows = static_cast<unsigned>(shape_.rows()), row = static_cast<unsigned>(shape_.d_v);
    const Schedule& mine = schedules_[rank];
    float *own = prepared_->memory.at(mine.buffer("own")), *into = prepared_->memory.at(mine.buffer("into"));
    count_round_kernel<<<1, 1, 0, rig_.stream()>>>(rig_.round());
    fill_kernel<<<32, 256, 0, rig_.stream()>>>(own, rows, row, rig_.round(), rank);
    dawdle_kernel<<<1, 1, 0, rig_.stream()>>>(rig_.round(), rank);
    prepared_->round->enqueue(rig_.stream());
    check_kernel<<<32, 256, 0, rig_.stream()>>>(into, rows, row, rig_.round(),
                                                reversed_ ? ranks - 1 - rank : rank, ranks, reversed_,
                                                rig_.wrong_on_device());
    cuda_launched();
  }

  std::string fault() const { return prepared_->round->fault(); }

 private:
  Rig& rig_;
  Shape shape_;
  bool reversed_;
  std::vector<Schedule> schedules_;
  PeerExchange exchange_;
  std::unique_ptr<PreparedRound> prepared_;
};

}  // namespace baton
