// SPDX-License-Identifier: Apache-2.0
// Enqueuing of operations.
#include <algorithm>
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/peer/streams.cuh"

namespace baton {
namespace {

std::vector<StreamedOperation> streamed(const PeerProgram& program) {
  std::vector<StreamedOperation> operations;
  for (const PeerOperation& operation : program.operations)
    operations.push_back({operation.compute >= 0, operation.waits_for});
  return operations;
}

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
                         const PeerLaunches& launches)
    : schedule_(schedule), program_(std::move(program)), streams_(streamed(program_)) {
  for (const Step& step : schedule.steps()) operands_.push_back(place.memory.operands(step));
  make_kernels(place, launches);
}

void PeerStreams::make_kernels(const PeerPlace& place, const PeerLaunches& launches) {
  const auto& operations = program_.operations;
  const auto exchanges = std::count_if(operations.begin(), operations.end(),
                                       [](const PeerOperation& operation) { return operation.compute < 0; });
  std::ptrdiff_t number = 0;
  for (const PeerOperation& operation : operations) {
    auto& kernel = kernels_.emplace_back();
    if (operation.compute >= 0) continue;
    const PeerPart part{
        .senders = senders(program_), .opens = number == 0, .closes = number == exchanges - 1};
    const PeerLaunch& launch = operation.is_beside_work ? launches.beside_work : launches.alone;
    kernel = std::make_unique<PeerKernel>(program_, operation, part, place, launch);
    ++number;
  }
}

void PeerStreams::enqueue(cudaStream_t stream, Stopwatch* marks) const {
  streams_.enqueue(
      stream, [this](std::size_t i, cudaStream_t into) { enqueue(i, into); }, marks);
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
    const double start = TwoStreams::start_seconds(marks, i), finish = TwoStreams::finish_seconds(marks, i);
    if (operation.compute >= 0) times.push_back({schedule_.home_rank(), operation.compute, start, finish});
    for (int instruction = operation.first; instruction < operation.last; ++instruction)
      for (int step : program_.instructions[instruction].steps)
        times.push_back({schedule_.home_rank(), step, start, finish});
  }
  return times;
}

}  // namespace baton
