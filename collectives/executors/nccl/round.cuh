// SPDX-License-Identifier: Apache-2.0
// One rank's schedule as NCCL calls and kernels, and the natives of the `nccl` executor: library
// calls that stand in for a schedule.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The arguments of a native. It enqueues into `stream` and returns; it may be captured into a
/// graph.
struct NcclCall {
  /// All ranks, by home rank.
  ncclComm_t comm;
  cudaStream_t stream;
  /// This rank's place in scan order, and the number of ranks.
  int place = 0;
  int ranks = 1;
  bool reversed = false;
  int blocks = 1;
  const DeviceOperands& operands;

  /// The home rank of a place in scan order.
  int home(int at) const { return reversed ? ranks - 1 - at : at; }
};

/// Where a native needs its buffers, the least demanding first.
enum class NcclMemory {
  /// Anywhere.
  plain,
  /// In a symmetric window.
  window,
  /// In a symmetric window of a communicator that leaves collectives to the copy engines.
  copy_engine_window
};

struct NcclNative {
  std::function<void(const NcclCall&)> body;
  NcclMemory memory = NcclMemory::plain;
};

/// All natives of NCCL, by name.
Registry<NcclNative>& nccl_natives();

/// Adds a native to the registry, before `main`. Throws UsageError if its name is taken.
struct RegisteredNcclNative {
  RegisteredNcclNative(const std::string& name, NcclNative native) {
    nccl_natives().add(name, std::move(native));
  }
};

class NcclRound : public Round {
 public:
  /// The schedule's kernels and natives must be registered; its messages run in `groups`, as
  /// `nccl_groups` cuts them. `memory` holds its buffers. Both `memory` and the communicator must
  /// outlive the round.
  NcclRound(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory, ncclComm_t comm);

  /// NCCL's kernels have no time limit.
  std::string endless_wait_for(int rank) const override;

 private:
  void enqueue_operation(std::size_t operation, cudaStream_t stream) const override;
  void enqueue_messages(const std::vector<int>& group, cudaStream_t stream) const;
  void enqueue_native(int step, cudaStream_t stream) const;

  ncclComm_t comm_;
  std::vector<DeviceOperands> operands_;  // of each step
};

}  // namespace baton
