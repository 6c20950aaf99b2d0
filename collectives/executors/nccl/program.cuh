// SPDX-License-Identifier: Apache-2.0
// One rank's schedule as NCCL calls and kernels on two streams.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/two_streams.cuh"
#include "collectives/executors/nccl/native.cuh"
#include "collectives/executors/nccl/plan.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

class NcclProgram {
 public:
  /// The schedule's kernels and natives must be registered; its messages run in `groups`, as `nccl_groups` cuts them.
  /// `memory` holds its buffers and must outlive the program, as must the communicator.
  NcclProgram(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory, ncclComm_t comm);

  /// Enqueues one round into `stream`, compute steps on a stream beside it; may be captured. Where there are `marks`, with
  /// one before and behind each operation.
  void enqueue(cudaStream_t stream, Stopwatch* marks = nullptr) const;
  /// When the steps of a marked round ran, once it has ended, in seconds since it began. The messages of a group run as
  /// one.
  std::vector<StepTime> step_times(const Stopwatch& marks) const;

  const Schedule& schedule() const { return schedule_; }

 private:
  void enqueue(const NcclOperation& operation, cudaStream_t stream) const;
  void enqueue_messages(const NcclOperation& group, cudaStream_t stream) const;
  void enqueue_native(int step, cudaStream_t stream) const;

  Schedule schedule_;
  ncclComm_t comm_;
  std::vector<DeviceOperands> operands_;  // of each step
  std::vector<NcclOperation> plan_;
  TwoStreams streams_;
};

}  // namespace baton
