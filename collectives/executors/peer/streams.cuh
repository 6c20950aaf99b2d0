// SPDX-License-Identifier: Apache-2.0
// A rank's program on two streams: exchange kernels in the caller's, compute steps in one of its own, events where one
// waits for the other.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "collectives/executors/cuda/two_streams.cuh"
#include "collectives/executors/peer/device/kernel.cuh"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// How exchange kernels are run with the device to themselves, and while local kernels may run.
struct PeerLaunches {
  PeerLaunch alone, beside_work;
};

class PeerStreams {
 public:
  /// The schedule's kernels must have device bodies. What `place` refers to and `schedule` must outlive it.
  PeerStreams(const Schedule& schedule, PeerProgram program, const PeerPlace& place,
              const PeerLaunches& launches);

  /// Enqueues one round, with a fork to the stream of compute steps and a join; may be captured. Where there are `marks`,
  /// with one before and behind each operation.
  void enqueue(cudaStream_t stream, Stopwatch* marks = nullptr) const;

  /// When the steps of a marked round ran, once it has ended, in seconds since it began. The steps of an exchange kernel
  /// run as one.
  std::vector<StepTime> step_times(const Stopwatch& marks) const;

 private:
  void make_kernels(const PeerPlace& place, const PeerLaunches& launches);
  void enqueue(std::size_t operation, cudaStream_t stream) const;

  const Schedule& schedule_;
  PeerProgram program_;
  std::vector<DeviceOperands> operands_;              // of each step
  std::vector<std::unique_ptr<PeerKernel>> kernels_;  // of each operation; null for a compute step
  TwoStreams streams_;
};

}  // namespace baton
