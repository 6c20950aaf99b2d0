// SPDX-License-Identifier: Apache-2.0
// Timed rounds on GPUs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <sstream>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/executor.cuh"
#include "collectives/executors/cuda/gpu.cuh"
#include "collectives/executors/cuda/wire.cuh"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

__global__ void empty_kernel() {}

cudaStream_t most_urgent_stream() {
  int least = 0, greatest = 0;
  cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return stream;
}

std::string version_text(int code) {
  return std::to_string(code / 1000) + "." + std::to_string(code % 1000 / 10);
}

}  // namespace

CudaExecutor::CudaExecutor(int ranks)
    : ranks_(ranks), gpu_(take_gpu(ranks_)), stream_(most_urgent_stream()), start_(ranks_) {}

CudaExecutor::~CudaExecutor() {
  drop_recording();
  cudaStreamDestroy(stream_);
}

void CudaExecutor::drop_recording() {
  // When another rank has failed, the device may never come to an end.
  if (std::uncaught_exceptions() > 0) return;
  cudaDeviceSynchronize();
  if (recording_ != nullptr) cudaGraphExecDestroy(recording_);
  recording_ = nullptr;
}

void CudaExecutor::write(int, const Slice& into, std::span<const float> from) { memory().write(into, from); }

void CudaExecutor::read(std::span<float> into, int, const Slice& from) const { memory().read(into, from); }

double CudaExecutor::time_from_start(const std::function<void()>& enqueue) {
  start_.enqueue(stream_);
  stopwatch_.mark(0, stream_);
  enqueue();
  stopwatch_.mark(1, stream_);
  start_.release();
  await(1);
  return stopwatch_.seconds(0, 1);
}

/// A device whose rank waits for one that is no more may never come to `mark`; where it does not give up by itself, the
/// host does.
void CudaExecutor::await(int mark) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds patience(12), between_looks(1);  // devices give up before that
  auto next_look = Clock::now() + patience;
  while (!stopwatch_.has_come(mark)) {
    if (Clock::now() < next_look) continue;
    next_look += between_looks;
    const auto absentee = ranks_.absentee();
    if (!absentee) continue;
    const std::string rank = std::to_string(absentee->rank), message = first_message_with(absentee->rank);
    throw SystemError("a round does not end, and rank " + rank + ' ' + absentee->state +
                      (message.empty() ? "" : "; the first message with it is " + message));
  }
  throw_if_failed();
}

void CudaExecutor::throw_if_failed() const {
  const std::string start = start_.fault(), round = fault();
  if (start.empty() && round.empty()) return;
  throw SystemError(start + (start.empty() || round.empty() ? "" : "; ") + round);
}

double CudaExecutor::run() {
  return time_from_start([this] { enqueue_round(); });
}

std::vector<double> CudaExecutor::stream(int rounds) {
  start_.enqueue(stream_);
  stopwatch_.mark(0, stream_);
  int last = 0;
  // Rounds that wait in vain take long, and there may be a million.
  while (last < rounds && fault().empty()) {
    enqueue_round();
    stopwatch_.mark(++last, stream_);
    // Not later: a stream of many rounds fills the device's queue, and the host would wait for what waits for it.
    if (last == 1) start_.release();
  }
  await(last);
  std::vector<double> seconds(rounds);
  for (int round = 0; round < rounds; ++round) seconds[round] = stopwatch_.seconds(round, round + 1);
  return seconds;
}

double CudaExecutor::replay() {
  if (recording_ == nullptr) record();
  return time_from_start([this] { cuda(cudaGraphLaunch(recording_, stream_)); }) / replayed_rounds();
}

void CudaExecutor::record() {
  cudaGraph_t graph = nullptr;
  cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  for (int round = 0; round < replayed_rounds(); ++round) enqueue_round();
  cuda(cudaStreamEndCapture(stream_, &graph));
  cuda(cudaGraphInstantiate(&recording_, graph, 0));
  cuda(cudaGraphDestroy(graph));
  cuda(cudaGraphUpload(recording_, stream_));
  cuda(cudaStreamSynchronize(stream_));
  ranks_.barrier();
}

void CudaExecutor::forget_recording() {
  cuda(cudaDeviceSynchronize());
  if (recording_ != nullptr) cuda(cudaGraphExecDestroy(recording_));
  recording_ = nullptr;
}

void CudaExecutor::warm_up() {
  ranks_.barrier();
  enqueue_round();
  stopwatch_.mark(0, stream_);
  await(0);
  memory().clear();
  ranks_.barrier();
}

double CudaExecutor::floor_seconds() {
  std::vector<double> seconds(50);
  for (double& round : seconds) round = time_from_start([this] { empty_kernel<<<1, 32, 0, stream_>>>(); });
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  const auto all = ranks_.gather(*middle);
  return *std::max_element(all.begin(), all.end());
}

Wire CudaExecutor::measure_wire() {
  Wire wire{.floor_seconds = floor_seconds()};
  if (ranks_.size() < 2 || !lacks_peer_access(ranks_).empty()) return wire;
  const LinkLimits limits = measure_link_limits(ranks_, stream_, wire.floor_seconds);
  wire.alpha_seconds = limits.alpha_seconds;
  wire.beta = limits.beta;
  return wire;
}

std::vector<std::pair<std::string, std::string>> CudaExecutor::facts() const {
  cudaDeviceProp properties{};
  cuda(cudaGetDeviceProperties(&properties, gpu_));
  int gpus = 0, runtime = 0, driver = 0;
  cuda(cudaGetDeviceCount(&gpus));
  cuda(cudaRuntimeGetVersion(&runtime));
  cuda(cudaDriverGetVersion(&driver));
  return {{"gpu", properties.name},
          {"gpus", std::to_string(gpus)},
          {"multiprocessors", std::to_string(properties.multiProcessorCount)},
          {"driver", monitor_.driver()},
          {"cuda_runtime", version_text(runtime)},
          {"cuda_driver", version_text(driver)},
          {"nvlink_multicast", executor_choices().multicast ? "allowed" : "off"}};
}

Refusal CudaExecutor::lacks_memory(std::span<const Schedule> schedules) const {
  std::size_t needed = 0, free = 0, total = 0;
  for (const Schedule& schedule : schedules) needed = std::max(needed, DeviceMemory::bytes(schedule));
  cuda(cudaMemGetInfo(&free, &total));
  free += held_bytes(schedules[ranks_.rank()]);
  if (needed < free) return {};
  char text[96];
  std::snprintf(text, sizeof text, "needs %.1f GiB of GPU memory, %.1f are free", needed / 1073741824.0,
                free / 1073741824.0);
  return text;
}

std::string first_message_with(const Schedule& schedule, int rank) {
  const auto& steps = schedule.steps();
  const auto found = std::find_if(steps.begin(), steps.end(), [rank](const Step& step) {
    return step.is_message() && step.peer == rank;
  });
  if (found == steps.end()) return {};
  const Slice& slice = found->verb == Verb::send ? found->reads[0] : found->writes[0];
  std::ostringstream text;
  text << step_name(*found, static_cast<int>(found - steps.begin())) << ", elements " << slice.offset
       << " to " << slice.end() << " of '" << schedule.buffers()[slice.buffer].name << "'";
  return text.str();
}

}  // namespace baton
