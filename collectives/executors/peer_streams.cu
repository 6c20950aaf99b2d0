// SPDX-License-Identifier: Apache-2.0
// Enqueuing of operations.
#include <algorithm>
#include <utility>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/cuda_steps.cuh"
#include "collectives/executors/peer_streams.cuh"

namespace baton {
namespace {

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// The mark before an operation; the one behind it is the next.
int first_mark(std::size_t operation) { return 1 + 2 * static_cast<int>(operation); }

/// All ranks that send to this one in the program.
std::uint64_t senders(const PeerProgram& program) {
  std::uint64_t all = 0;
  for (const PeerInstruction& instruction : program.instructions) {
    if (instruction.arrival) all |= bit_of(instruction.arrival->peer);
    if (instruction.fold && instruction.fold->arrived) all |= bit_of(instruction.fold->arrived->from.peer);
  }
  return all;
}

}  // namespace

PeerStreams::PeerStreams(const Schedule& schedule, PeerProgram program, const PeerPlace& place,
                         const PeerLaunch& launch)
    : schedule_(schedule), program_(std::move(program)), done_(program_.operations.size()) {
  for (const Step& step : schedule.steps()) operands_.push_back(place.memory.operands(step));
  make_kernels(place, launch);
  for (const PeerOperation& operation : program_.operations)
    if (operation.waits_for >= 0 && done_[operation.waits_for] == nullptr)
      done_[operation.waits_for] = new_event();
  if (schedule.kernels().empty()) return;
  cuda(cudaStreamCreateWithFlags(&compute_stream_, cudaStreamNonBlocking));
  forked_ = new_event();
  joined_ = new_event();
}

PeerStreams::~PeerStreams() {
  for (cudaEvent_t event : done_)
    if (event != nullptr) cudaEventDestroy(event);
  if (compute_stream_ == nullptr) return;
  cudaEventDestroy(forked_);
  cudaEventDestroy(joined_);
  cudaStreamDestroy(compute_stream_);
}

void PeerStreams::make_kernels(const PeerPlace& place, const PeerLaunch& launch) {
  const auto& operations = program_.operations;
  const auto exchanges = std::count_if(operations.begin(), operations.end(),
                                       [](const PeerOperation& operation) { return operation.compute < 0; });
  std::ptrdiff_t number = 0;
  for (const PeerOperation& operation : operations) {
    auto& kernel = kernels_.emplace_back();
    if (operation.compute >= 0) continue;
    const PeerPart part{
        .senders = senders(program_), .opens = number == 0, .closes = number == exchanges - 1};
    kernel = std::make_unique<PeerKernel>(program_, operation, part, place, launch);
    ++number;
  }
}

void PeerStreams::enqueue(cudaStream_t stream, Stopwatch* marks) const {
  if (marks != nullptr) marks->mark(0, stream);
  if (compute_stream_ != nullptr) {
    cuda(cudaEventRecord(forked_, stream));
    cuda(cudaStreamWaitEvent(compute_stream_, forked_));
  }
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const cudaStream_t into = kernels_[i] ? stream : compute_stream_;
    const int before = program_.operations[i].waits_for;
    if (before >= 0) cuda(cudaStreamWaitEvent(into, done_[before]));
    if (marks != nullptr) marks->mark(first_mark(i), into);
    enqueue(i, into);
    if (marks != nullptr) marks->mark(first_mark(i) + 1, into);
    if (done_[i] != nullptr) cuda(cudaEventRecord(done_[i], into));
  }
  if (compute_stream_ == nullptr) return;
  cuda(cudaEventRecord(joined_, compute_stream_));
  cuda(cudaStreamWaitEvent(stream, joined_));
}

void PeerStreams::enqueue(std::size_t operation, cudaStream_t stream) const {
  if (kernels_[operation]) return kernels_[operation]->enqueue(stream);
  const int step = program_.operations[operation].compute;
  run_on_device(stream, schedule_, schedule_.steps()[step], operands_[step]);
}

std::vector<StepTime> PeerStreams::step_times(const Stopwatch& marks) const {
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    const PeerOperation& operation = program_.operations[i];
    const double start = marks.seconds(0, first_mark(i)), finish = marks.seconds(0, first_mark(i) + 1);
    if (operation.compute >= 0) times.push_back({schedule_.home_rank(), operation.compute, start, finish});
    for (int instruction = operation.first; instruction < operation.last; ++instruction)
      for (int step : program_.instructions[instruction].steps)
        times.push_back({schedule_.home_rank(), step, start, finish});
  }
  return times;
}

}  // namespace baton
