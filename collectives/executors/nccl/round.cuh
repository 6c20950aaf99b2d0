// SPDX-License-Identifier: Apache-2.0
// One rank's schedule as NCCL calls and kernels, and the natives of the `nccl` executor: library
// calls that stand in for a schedule.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/nccl/plan.hpp"
#include "collectives/executors/routine.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The arguments of a native. It enqueues into `stream` and returns; it may be captured into a
/// graph.
struct NcclCall {
  /// Communicator of all ranks, numbered by home rank.
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

/// Kinds of memory in which a native needs its buffers, the least demanding first.
enum class NcclMemory {
  /// The native takes buffers in any device memory.
  plain,
  /// The native needs its buffers in a symmetric window.
  window,
  /// The native needs its buffers in a symmetric window of a communicator that leaves collectives
  /// to the copy engines.
  copy_engine_window
};

/// A native and the memory that it needs.
struct NcclNative {
  std::function<void(const NcclCall&)> body;
  NcclMemory memory = NcclMemory::plain;
  /// True if NCCL builds the native of ncclSend and ncclRecv.
  bool is_of_messages = false;
};

/// All natives of NCCL, by name.
inline Registry<NcclNative>& nccl_natives() {
  static Registry<NcclNative> all("NCCL native");
  return all;
}

/// Adds a native to the registry, before `main`. If its name is taken, the program ends with exit
/// code 2 and a text that says so.
struct RegisteredNcclNative {
  RegisteredNcclNative(const std::string& name, NcclNative native) {
    add_or_exit([&] { nccl_natives().add(name, std::move(native)); });
  }
};

/// A round of NCCL: groups of messages, local steps and natives.
class NcclRound : public Round {
 public:
  /// The schedule's kernels and natives must be registered; its messages run in `groups`, as
  /// `nccl_groups` cuts them. `memory` holds its buffers. `memory` and the communicators of the
  /// messages and the natives must outlive the round.
  NcclRound(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory,
            ncclComm_t messages, ncclComm_t natives);
  /// A round of a routine, which must outlive it.
  NcclRound(Schedule schedule, const DeviceMemory& memory, RoutineTurns& turns)
      : NcclRound(std::move(schedule), {-1}, memory, nullptr, nullptr) {
    turns_ = &turns;
  }

  int endless_wait_for(int rank) const override;  // NCCL's kernels have no time limit

 private:
  void enqueue_operation(std::size_t operation, cudaStream_t stream) const override;
  void enqueue_messages(const std::vector<int>& group, cudaStream_t stream) const;
  void enqueue_native(int step, cudaStream_t stream) const;

  ncclComm_t messages_;
  ncclComm_t natives_;
  std::vector<DeviceOperands> operands_;  // of each step
  RoutineTurns* turns_ = nullptr;         // of the routine, if the schedule has one
};

inline NcclRound::NcclRound(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory,
                            ncclComm_t messages, ncclComm_t natives)
    : Round(schedule, nccl_plan(schedule, groups)), messages_(messages), natives_(natives) {
  for (const Step& step : schedule.steps()) operands_.push_back(memory.operands(step));
}

inline void NcclRound::enqueue_operation(std::size_t operation, cudaStream_t stream) const {
  const std::vector<int>& all = operations()[operation].steps;
  const Step& step = schedule().steps()[all[0]];
  if (step.is_message()) return enqueue_messages(all, stream);
  if (step.verb == Verb::native) return enqueue_native(all[0], stream);
  run_on_device(stream, schedule(), step, operands_[all[0]]);
}

inline void NcclRound::enqueue_messages(const std::vector<int>& group, cudaStream_t stream) const {
  nccl(ncclGroupStart());
  for (int index : group) {
    const Step& step = schedule().steps()[index];
    if (step.verb == Verb::send) {
      const auto bytes = static_cast<std::size_t>(step.reads[0].bytes());
      nccl(ncclSend(operands_[index].reads[0].data(), bytes, ncclChar, step.peer, messages_, stream));
    } else {
      const auto bytes = static_cast<std::size_t>(step.writes[0].bytes());
      nccl(ncclRecv(operands_[index].writes[0].data(), bytes, ncclChar, step.peer, messages_, stream));
    }
  }
  nccl(ncclGroupEnd());
}

inline void NcclRound::enqueue_native(int index, cudaStream_t stream) const {
  if (turns_ != nullptr) return turns_->run();
  const NativeCall& native = schedule().natives()[schedule().steps()[index].body];
  const int home = schedule().home_rank(), ranks = schedule().ranks();
  nccl_natives()
      .at(native.name)
      .body({.comm = natives_,
             .stream = stream,
             .place = native.reversed ? ranks - 1 - home : home,
             .ranks = ranks,
             .reversed = native.reversed,
             .blocks = native.blocks,
             .operands = operands_[index]});
}

inline int NcclRound::endless_wait_for(int rank) const {
  const auto& steps = schedule().steps();
  const auto found = std::find_if(steps.begin(), steps.end(), [rank](const Step& step) {
    return step.is_message() && step.peer == rank;
  });
  return found == steps.end() ? -1 : static_cast<int>(found - steps.begin());
}

}  // namespace baton
