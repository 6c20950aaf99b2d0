// SPDX-License-Identifier: Apache-2.0
// The steps of a schedule on a device: one step in a stream, and a round of them on two streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/launch_plan.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Enqueues a combine, with the operands of `combine_on_host` (schedule/kernel.hpp). It is one
/// kernel, or two where a composition writes its decay over the later one, or multiplies matrices.
void combine_on_device(cudaStream_t stream, const DeviceOperands& operands, const Combine& by);

/// Enqueues a copy, combine or compute step of `schedule`.
void run_on_device(cudaStream_t stream, const Schedule& schedule, const Step& step,
                   const DeviceOperands& operands);

/// Refuses a schedule with a kernel that has no device body, or none for its parameters.
Refusal lacks_device_body(const Schedule& schedule);

/// Times between points of streams, by CUDA events that are made once and used again.
class Stopwatch {
 public:
  Stopwatch() = default;
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Marks this point of the stream as number `mark`.
  void mark(int mark, cudaStream_t stream);
  /// True when the stream has come to `mark`.
  bool has_come(int mark) const;
  /// Seconds from one mark to another, both of which the device has passed.
  double seconds(int from, int to) const;

  /// Seconds of what `enqueue` puts into the stream; waits for it.
  template <class Enqueue>
  double time(cudaStream_t stream, const Enqueue& enqueue) {
    mark(0, stream);
    enqueue();
    mark(1, stream);
    cuda(cudaEventSynchronize(events_[1]));
    return seconds(0, 1);
  }

 private:
  std::vector<cudaEvent_t> events_;
};

/// One rank's prepared round: operations on two streams, with an event where one waits for the
/// other.
class Round {
 public:
  Round(Schedule schedule, std::vector<LaunchOperation> operations);
  virtual ~Round();
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  /// Enqueues one round into `stream`, with a fork to the stream of compute steps and a join. It
  /// may be captured into a graph. `marks`, if any, gets one mark before and one behind each
  /// operation.
  void enqueue(cudaStream_t stream, Stopwatch* marks = nullptr) const;

  /// When the steps of a marked round ran, once it has ended, in seconds since it began. The steps
  /// of an operation share its times.
  std::vector<StepTime> step_times(const Stopwatch& marks) const;

  /// The wait that the device gave up, in words; empty if there is none. To be called when no round
  /// is under way.
  virtual std::string fault() const { return {}; }
  /// The step of that wait; -1 if there is none.
  virtual int faulty_step() const { return -1; }
  /// The step of the first message with `rank` that the device may wait for without end; -1 if
  /// there is none.
  virtual int endless_wait_for(int /*rank*/) const { return -1; }

  const Schedule& schedule() const { return schedule_; }

 protected:
  virtual void enqueue_operation(std::size_t operation, cudaStream_t stream) const = 0;

  const std::vector<LaunchOperation>& operations() const { return operations_; }

 private:
  Schedule schedule_;
  std::vector<LaunchOperation> operations_;
  std::vector<cudaEvent_t> done_;          // of each operation that another waits for
  cudaStream_t compute_stream_ = nullptr;  // only where something computes
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
};

}  // namespace baton
