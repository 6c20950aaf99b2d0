// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/executor.cuh"
#include "collectives/executors/stuck_error.hpp"

namespace baton {
namespace {

__global__ void no_op_kernel() {}

cudaStream_t most_urgent_stream() {
  int least = 0, greatest = 0;
  cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return stream;
}

std::string cuda_version_text(int code) {
  return std::to_string(code / 1000) + "." + std::to_string(code % 1000 / 10);
}

/// A message of a schedule as errors name it, with its elements.
std::string message_at(const Schedule& schedule, int index) {
  const Step& step = schedule.steps()[index];
  const Slice& slice = step.verb == Verb::send ? step.reads[0] : step.writes[0];
  return step_name(step, index) + ", elements " + std::to_string(slice.offset) + " to " +
         std::to_string(slice.end()) + " of '" + schedule.buffers()[slice.buffer].name + "'";
}

/// Constants of NVML's reference manual.
constexpr int nvml_success = 0, nvml_sm_clock = 1, nvml_memory_clock = 2, nvml_core_temperature = 0;

}  // namespace

template <class Function>
Function GpuMonitor::function(const char* name) const {
  return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
}

GpuMonitor::GpuMonitor() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  const auto start = function<int (*)()>("nvmlInit_v2");
  const auto find = function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (start == nullptr || find == nullptr || start() != nvml_success) return;
  int gpu = 0;
  char address[32] = "";
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetPCIBusId(address, sizeof address, gpu));
  if (find(address, &gpu_) != nvml_success) gpu_ = nullptr;
}

GpuMonitor::~GpuMonitor() {
  if (const auto stop = function<int (*)()>("nvmlShutdown")) stop();
  if (library_ != nullptr) dlclose(library_);
}

double GpuMonitor::number(const char* name, int argument) const {
  unsigned value = 0;
  const auto ask = function<int (*)(void*, int, unsigned*)>(name);
  return gpu_ != nullptr && ask != nullptr && ask(gpu_, argument, &value) == nvml_success ? value : -1.0;
}

std::vector<Reading> GpuMonitor::readings() const {
  unsigned milliwatts = 0;
  unsigned long long reasons = 0;
  const auto power = function<int (*)(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
  const auto why = function<int (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  const bool has_power = gpu_ != nullptr && power != nullptr && power(gpu_, &milliwatts) == nvml_success;
  const bool has_reasons = gpu_ != nullptr && why != nullptr && why(gpu_, &reasons) == nvml_success;
  return {{"sm_clock_mhz", number("nvmlDeviceGetClockInfo", nvml_sm_clock)},
          {"memory_clock_mhz", number("nvmlDeviceGetClockInfo", nvml_memory_clock)},
          {"power_watts", has_power ? milliwatts * 1e-3 : -1},
          {"temperature_celsius", number("nvmlDeviceGetTemperature", nvml_core_temperature)},
          {"throttle_reasons", has_reasons ? static_cast<double>(reasons) : -1}};
}

std::string GpuMonitor::driver() const {
  char text[96] = "";
  const auto ask = function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (ask != nullptr) ask(text, sizeof text);
  return text;
}

CudaExecutor::CudaExecutor(int ranks)
    : ranks_(ranks), gpu_(take_gpu(ranks_)), stream_(most_urgent_stream()), start_(ranks_) {}

CudaExecutor::~CudaExecutor() {
  drop_at_end();
  cudaStreamDestroy(stream_);
}

void CudaExecutor::drop_at_end() {
  // When another rank has failed, the device may never come to an end.
  if (std::uncaught_exceptions() == 0) {
    cudaDeviceSynchronize();
    if (recording_ != nullptr) cudaGraphExecDestroy(recording_);
  }
  recording_ = nullptr;
  round_.reset();
  memory_.reset();
}

void CudaExecutor::drop_prepared() {
  cuda(cudaDeviceSynchronize());
  if (recording_ != nullptr) cuda(cudaGraphExecDestroy(recording_));
  recording_ = nullptr;
  round_.reset();
  memory_.reset();
}

void CudaExecutor::take_prepared(std::unique_ptr<DeviceMemory> memory, std::unique_ptr<Round> round) {
  memory_ = std::move(memory);
  round_ = std::move(round);
  ranks_.barrier();
  round_->enqueue(stream_);
  stopwatch_.mark(0, stream_);
  await(0);
  memory_->clear();
  ranks_.barrier();
}

void CudaExecutor::begin_timed() {
  start_.enqueue(stream_);
  stopwatch_.mark(0, stream_);
}

double CudaExecutor::end_timed() {
  stopwatch_.mark(1, stream_);
  start_.release();
  await(1);
  return stopwatch_.seconds(0, 1);
}

/// Waits until the device has come to `mark`. Most waits on the device have a time limit of their
/// own; for those that have none, the host looks whether all ranks still run.
void CudaExecutor::await(int mark) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds device_limit(12), between_looks(1);  // the device's own limits are shorter
  auto next_look = Clock::now() + device_limit;
  while (!stopwatch_.has_come(mark)) {
    if (Clock::now() < next_look) continue;
    next_look += between_looks;
    const auto absentee = ranks_.absentee();
    if (!absentee) continue;
    const int step = round_ ? round_->endless_wait_for(absentee->rank) : -1;
    throw StuckError(
        "a round does not end, and rank " + std::to_string(absentee->rank) + ' ' + absentee->state +
            (step < 0 ? "" : "; the first message with it is " + message_at(round_->schedule(), step)),
        step);
  }
  throw_if_failed();
}

void CudaExecutor::throw_if_failed() const {
  const std::string start = start_.fault(), round = fault();
  if (start.empty() && round.empty()) return;
  throw StuckError(start + (start.empty() || round.empty() ? "" : "; ") + round,
                   round_ ? round_->faulty_step() : -1);
}

std::uint64_t CudaExecutor::checksum(int, std::span<const Slice> slices) const {
  return checksum_.of(*memory_, slices, stream_);
}

void CudaExecutor::scatter(int, const Slice& into, std::int64_t stride, float value) {
  scatter_on_device(*memory_, into, stride, value, stream_);
}

double CudaExecutor::run() {
  begin_timed();
  round_->enqueue(stream_);
  return end_timed();
}

std::vector<StepTime> CudaExecutor::run_traced() {
  begin_timed();
  round_->enqueue(stream_, &trace_);
  end_timed();
  return round_->step_times(trace_);
}

std::vector<double> CudaExecutor::stream(int rounds) {
  begin_timed();
  int last = 0;
  // After the first failed round no more are enqueued: each would time out, and there may be a
  // million.
  while (last < rounds && fault().empty()) {
    round_->enqueue(stream_);
    stopwatch_.mark(++last, stream_);
    // Many rounds fill the device's queue, and the host would wait for a device that waits for the
    // host.
    if (last == 1) start_.release();
  }
  await(last);
  std::vector<double> seconds(rounds);
  for (int round = 0; round < rounds; ++round) seconds[round] = stopwatch_.seconds(round, round + 1);
  return seconds;
}

double CudaExecutor::replay() {
  if (recording_ == nullptr) record();
  begin_timed();
  cuda(cudaGraphLaunch(recording_, stream_));
  return end_timed() / replayed_rounds();
}

void CudaExecutor::record() {
  cudaGraph_t graph = nullptr;
  cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  for (int round = 0; round < replayed_rounds(); ++round) round_->enqueue(stream_);
  cuda(cudaStreamEndCapture(stream_, &graph));
  cuda(cudaGraphInstantiate(&recording_, graph, 0));
  cuda(cudaGraphDestroy(graph));
  cuda(cudaGraphUpload(recording_, stream_));
  cuda(cudaStreamSynchronize(stream_));
  ranks_.barrier();
}

double CudaExecutor::floor_seconds() {
  std::vector<double> seconds(50);
  for (double& round : seconds) {
    begin_timed();
    no_op_kernel<<<1, 32, 0, stream_>>>();
    round = end_timed();
  }
  const auto all = ranks_.gather(median(seconds));
  return *std::max_element(all.begin(), all.end());
}

std::vector<Reading> CudaExecutor::readings() const {
  auto all = monitor_.readings();
  all.push_back({"late_starts", static_cast<double>(start_.late_starts())});
  return all;
}

HardwareLimits CudaExecutor::measure_limits() {
  HardwareLimits limits{.floor_seconds = floor_seconds()};
  if (ranks_.size() > 1 && !is_shared() && !lacks_peer_access(ranks_))
    measure_link_limits(ranks_, stream_, limits);
  return limits;
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
          {"cuda_runtime", cuda_version_text(runtime)},
          {"cuda_driver", cuda_version_text(driver)},
          {"nvlink_multicast", executor_choices().multicast ? "allowed" : "off"}};
}

Refusal CudaExecutor::lacks_memory(std::span<const Schedule> schedules, std::size_t beside) const {
  std::size_t needed = 0, free = 0, total = 0;
  for (const Schedule& schedule : schedules) needed = std::max(needed, DeviceMemory::bytes(schedule));
  needed += beside;
  cuda(cudaMemGetInfo(&free, &total));
  if (is_shared()) free /= executor_choices().ranks_per_gpu;  // the others allocate as much
  free += held_bytes(schedules[ranks_.rank()]);
  if (needed < free) return {};
  char text[96];
  std::snprintf(text, sizeof text, "needs %.1f GiB of GPU memory, %.1f are free", needed / 1073741824.0,
                free / 1073741824.0);
  return text;
}

}  // namespace baton
