// SPDX-License-Identifier: Apache-2.0
// Enqueuing of operations.
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/nccl/program.cuh"

namespace baton {
namespace {

std::vector<StreamedOperation> streamed(const std::vector<NcclOperation>& plan) {
  std::vector<StreamedOperation> operations;
  for (const NcclOperation& operation : plan) operations.push_back({operation.computes, operation.waits_for});
  return operations;
}

}  // namespace

NcclProgram::NcclProgram(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory,
                         ncclComm_t comm)
    : schedule_(std::move(schedule)),
      comm_(comm),
      plan_(nccl_plan(schedule_, groups)),
      streams_(streamed(plan_)) {
  for (const Step& step : schedule_.steps()) operands_.push_back(memory.operands(step));
}

void NcclProgram::enqueue(cudaStream_t stream, Stopwatch* marks) const {
  streams_.enqueue(
      stream, [this](std::size_t i, cudaStream_t into) { enqueue(plan_[i], into); }, marks);
}

std::vector<StepTime> NcclProgram::step_times(const Stopwatch& marks) const {
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < plan_.size(); ++i)
    for (int step : plan_[i].steps)
      times.push_back({schedule_.home_rank(), step, TwoStreams::start_seconds(marks, i),
                       TwoStreams::finish_seconds(marks, i)});
  return times;
}

void NcclProgram::enqueue(const NcclOperation& operation, cudaStream_t stream) const {
  if (operation.is_group) return enqueue_messages(operation, stream);
  const int index = operation.steps.front();
  const Step& step = schedule_.steps()[index];
  if (step.verb == Verb::native) return enqueue_native(index, stream);
  run_on_device(stream, schedule_, step, operands_[index]);
}

void NcclProgram::enqueue_messages(const NcclOperation& group, cudaStream_t stream) const {
  nccl(ncclGroupStart());
  for (int index : group.steps) {
    const Step& step = schedule_.steps()[index];
    if (step.verb == Verb::send) {
      const auto bytes = static_cast<std::size_t>(step.reads[0].bytes());
      nccl(ncclSend(operands_[index].reads[0].data(), bytes, ncclChar, step.peer, comm_, stream));
    } else {
      const auto bytes = static_cast<std::size_t>(step.writes[0].bytes());
      nccl(ncclRecv(operands_[index].writes[0].data(), bytes, ncclChar, step.peer, comm_, stream));
    }
  }
  nccl(ncclGroupEnd());
}

void NcclProgram::enqueue_native(int index, cudaStream_t stream) const {
  const NativeCall& native = schedule_.natives()[schedule_.steps()[index].body];
  const int home = schedule_.home_rank(), ranks = schedule_.ranks();
  find_nccl_native(native.name)
      ->body({.comm = comm_,
              .stream = stream,
              .place = native.reversed ? ranks - 1 - home : home,
              .ranks = ranks,
              .reversed = native.reversed,
              .blocks = native.blocks,
              .operands = operands_[index]});
}

}  // namespace baton
