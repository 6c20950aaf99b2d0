// SPDX-License-Identifier: Apache-2.0
// Enqueuing of operations.
#include <utility>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/cuda_nccl.cuh"
#include "collectives/executors/cuda_steps.cuh"
#include "collectives/executors/nccl_program.cuh"

namespace baton {
namespace {

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// The mark before an operation; the one behind it is the next.
int first_mark(std::size_t operation) { return 1 + 2 * static_cast<int>(operation); }

}  // namespace

NcclProgram::NcclProgram(Schedule schedule, const std::vector<int>& groups, const DeviceMemory& memory,
                         ncclComm_t comm)
    : schedule_(std::move(schedule)), comm_(comm), plan_(nccl_plan(schedule_, groups)) {
  for (const Step& step : schedule_.steps()) operands_.push_back(memory.operands(step));
  for (const NcclOperation& operation : plan_)
    done_.push_back(operation.is_waited_for ? new_event() : nullptr);
  if (schedule_.kernels().empty()) return;
  cuda(cudaStreamCreateWithFlags(&compute_stream_, cudaStreamNonBlocking));
  forked_ = new_event();
  joined_ = new_event();
}

NcclProgram::~NcclProgram() {
  for (cudaEvent_t event : done_)
    if (event != nullptr) cudaEventDestroy(event);
  if (compute_stream_ == nullptr) return;
  cudaEventDestroy(forked_);
  cudaEventDestroy(joined_);
  cudaStreamDestroy(compute_stream_);
}

void NcclProgram::enqueue(cudaStream_t stream, Stopwatch* marks) {
  if (marks != nullptr) marks->mark(0, stream);
  if (compute_stream_ != nullptr) {
    cuda(cudaEventRecord(forked_, stream));
    cuda(cudaStreamWaitEvent(compute_stream_, forked_));
  }
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const cudaStream_t into = plan_[i].computes ? compute_stream_ : stream;
    if (plan_[i].waits_for >= 0) cuda(cudaStreamWaitEvent(into, done_[plan_[i].waits_for]));
    if (marks != nullptr) marks->mark(first_mark(i), into);
    enqueue(plan_[i], into);
    if (marks != nullptr) marks->mark(first_mark(i) + 1, into);
    if (done_[i] != nullptr) cuda(cudaEventRecord(done_[i], into));
  }
  if (compute_stream_ != nullptr) {
    cuda(cudaEventRecord(joined_, compute_stream_));
    cuda(cudaStreamWaitEvent(stream, joined_));
  }
}

std::vector<StepTime> NcclProgram::step_times(const Stopwatch& marks) const {
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < plan_.size(); ++i)
    for (int step : plan_[i].steps)
      times.push_back({schedule_.home_rank(), step, marks.seconds(0, first_mark(i)),
                       marks.seconds(0, first_mark(i) + 1)});
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
