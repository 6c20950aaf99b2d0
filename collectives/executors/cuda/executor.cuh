// SPDX-License-Identifier: Apache-2.0
// All executors on GPUs share buffers in device memory, three ways of timing rounds, and readings
// of the GPU.
//
//   isolated:   start barrier, event, round, event                          for each round
//   streaming:  start barrier, event, round, event, round, event, ...
//   graph:      start barrier, event, one launch of 20 recorded rounds, event
//
// The host enqueues while the start barrier holds the device, so no time is the host's unless the
// host falls behind within a stream of rounds.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/executor.hpp"

namespace baton {

/// NVML for the current GPU. The library comes with the driver and not with the toolkit, so it is
/// loaded when the program runs. Without it there are no readings, and no error.
class GpuMonitor {
 public:
  GpuMonitor();
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// sm_clock_mhz, memory_clock_mhz, power_watts, temperature_celsius, and throttle_reasons, NVML's
  /// bit mask (1: idle, 4: power cap, 8 and above: slow-downs). -1 stands for a reading that the
  /// driver does not give.
  std::vector<Reading> readings() const;
  /// The version of the driver, or an empty string.
  std::string driver() const;

 private:
  template <class Function>
  Function function(const char* name) const;
  double number(const char* function, int argument) const;

  void* library_ = nullptr;
  void* gpu_ = nullptr;
};

/// One process a GPU, or several that share it. Derived executors prepare a Round.
class CudaExecutor : public Executor, public Device {
 public:
  ~CudaExecutor() override;

  std::vector<int> local_ranks() const override { return {ranks_.rank()}; }
  void write(int, const Slice& into, std::span<const float> from) override { memory_->write(into, from); }
  void read(std::span<float> into, int, const Slice& from) const override { memory_->read(into, from); }
  std::uint64_t checksum(int, std::span<const Slice> slices) const override;
  void scatter(int, const Slice& into, std::int64_t stride, float value) override;
  void synchronise() override { ranks_.barrier(); }
  double run() override;
  std::vector<double> stream(int rounds) override;
  /// Runs one round and returns the times of its steps. All ranks count from the common start.
  std::vector<StepTime> run_traced() override;
  Device* device() override { return this; }

  bool is_shared() const override { return executor_choices().share_gpus(); }
  bool starts_on_device() const override { return start_.is_on_device(); }
  Refusal replay_unsupported() const override { return {}; }
  int replayed_rounds() const override { return 20; }
  double replay() override;
  HardwareLimits measure_limits() override;
  /// The readings of the GPU, and the number of rounds so far that began without their host.
  std::vector<Reading> readings() const override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 protected:
  /// Takes this process's GPU. Collective over the ranks. Throws UsageError if there is none.
  explicit CudaExecutor(int ranks);

  /// Frees the prepared round, its recording and its memory; `prepare` calls it first, as two cases
  /// need not fit at once.
  void drop_prepared();
  /// Frees the prepared round as `drop_prepared` does, for destructors of derived executors. It
  /// throws nothing, and does not wait while an exception propagates.
  void drop_at_end();
  /// Takes over a prepared round and its buffers and runs it once, which connects and loads. Leaves
  /// all buffers as they start. Collective.
  void take_prepared(std::unique_ptr<DeviceMemory> memory, std::unique_ptr<Round> round);

  /// Refuses schedules whose buffers, and `beside` bytes that `prepare` allocates for them, do not
  /// fit into this GPU's memory.
  Refusal lacks_memory(std::span<const Schedule> schedules, std::size_t beside = 0) const;
  /// Device memory that `prepare` frees before it allocates any for such schedules, in bytes.
  virtual std::size_t held_bytes(const Schedule&) const { return memory_ ? memory_->size() : 0; }

  const CudaRanks& ranks() const { return ranks_; }
  /// A stream of the highest priority, so that exchanges do not queue behind local work.
  cudaStream_t main_stream() const { return stream_; }
  /// Seconds that an empty round takes: the median of 50 on the slowest rank.
  double floor_seconds();

 private:
  void begin_timed();
  double end_timed();
  void record();
  void await(int mark);
  void throw_if_failed() const;
  std::string fault() const { return round_ ? round_->fault() : std::string{}; }

  CudaRanks ranks_;
  int gpu_;
  cudaStream_t stream_;
  StartBarrier start_;
  Stopwatch stopwatch_;
  Stopwatch trace_;
  GpuMonitor monitor_;
  ChecksumDevice checksum_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Round> round_;
  cudaGraphExec_t recording_ = nullptr;
};

}  // namespace baton
