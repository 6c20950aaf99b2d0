// SPDX-License-Identifier: Apache-2.0
// What all executors on GPUs share: buffers in device memory, and the three ways of timing rounds.
//
//   isolated:   start line, event, round, event                          for each round
//   streaming:  start line, event, round, event, round, event, ...
//   graph:      start line, event, one launch of 20 recorded rounds, event
//
// The host enqueues while the start line holds the device, so that no time is the host's unless it falls behind within a
// stream.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/monitor.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/cuda/start_barrier.cuh"
#include "collectives/executors/cuda/stopwatch.cuh"
#include "collectives/executors/executor.hpp"

namespace baton {

/// One process a GPU. A machine of its own says how a round is enqueued.
class CudaExecutor : public Executor, public Device {
 public:
  ~CudaExecutor() override;

  std::vector<int> local_ranks() const override { return {ranks_.rank()}; }
  void write(int rank, const Slice& into, std::span<const float> from) override;
  void read(std::span<float> into, int rank, const Slice& from) const override;
  void synchronise() override { ranks_.barrier(); }
  double run() override;
  std::vector<double> stream(int rounds) override;
  Device* device() override { return this; }

  bool starts_on_device() const override { return start_.is_on_device(); }
  Refusal replay_unsupported() const override { return {}; }
  int replayed_rounds() const override { return 20; }
  double replay() override;
  Wire measure_wire() override;
  std::vector<Reading> readings() const override { return monitor_.readings(); }
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  /// Takes this process's GPU. Collective over the ranks. Throws UsageError if there is none.
  explicit CudaExecutor(int ranks);

  /// Enqueues one round of what is prepared into `main_stream`; returns at once. May be captured into a graph.
  virtual void enqueue_round() = 0;
  /// The prepared buffers.
  virtual DeviceMemory& memory() = 0;
  virtual const DeviceMemory& memory() const = 0;
  /// What the device waited for in vain, or an empty string. Asked after every round.
  virtual std::string fault() const { return {}; }
  /// The first step of what is prepared that is a message with `rank`, in words; where the device does not give up
  /// waiting by itself.
  virtual std::string first_message_with(int /*rank*/) const { return {}; }
  /// Device memory that `prepare` frees before it takes any for such schedules.
  virtual std::size_t held_bytes(const Schedule& schedule) const = 0;

  /// Why the buffers do not fit into this GPU's memory, or an empty string.
  Refusal lacks_memory(std::span<const Schedule> schedules) const;

  /// To be called when another schedule is prepared, before its memory goes.
  void forget_recording();
  /// The same for destructors: throws nothing, and waits for nothing while an exception flies.
  void drop_recording();
  /// Seconds of what `enqueue` puts into `main_stream`, from a common start. Collective.
  double time_from_start(const std::function<void()>& enqueue);
  /// Rank's first run after `prepare`: connects, loads, leaves all buffers zero. Collective.
  void warm_up();

  const CudaRanks& ranks() const { return ranks_; }
  int gpu() const { return gpu_; }
  /// Of the highest priority: what goes between ranks must not queue behind local work.
  cudaStream_t main_stream() const { return stream_; }
  /// What an empty round reads: the median of 50, the slowest rank's.
  double floor_seconds();

 private:
  void record();
  void await(int mark);
  void throw_if_failed() const;

  CudaRanks ranks_;
  int gpu_;
  cudaStream_t stream_;
  StartLine start_;
  Stopwatch stopwatch_;
  GpuMonitor monitor_;
  cudaGraphExec_t recording_ = nullptr;
};

/// The first step of `schedule` that is a message with `rank`, with its source line and elements; or an empty string.
std::string first_message_with(const Schedule& schedule, int rank);

}  // namespace baton
