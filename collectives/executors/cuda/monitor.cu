// SPDX-License-Identifier: Apache-2.0
// NVML without its header. The functions and constants are those of its reference manual.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/monitor.cuh"

namespace baton {
namespace {

constexpr int success = 0, sm_clock = 1, memory_clock = 2, core_temperature = 0;

}  // namespace

template <class Function>
Function GpuMonitor::function(const char* name) const {
  return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
}

GpuMonitor::GpuMonitor() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  const auto start = function<int (*)()>("nvmlInit_v2");
  const auto find = function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (start == nullptr || find == nullptr || start() != success) return;
  int gpu = 0;
  char address[32] = "";
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetPCIBusId(address, sizeof address, gpu));
  if (find(address, &gpu_) != success) gpu_ = nullptr;
}

GpuMonitor::~GpuMonitor() {
  if (const auto stop = function<int (*)()>("nvmlShutdown")) stop();
  if (library_ != nullptr) dlclose(library_);
}

double GpuMonitor::number(const char* name, int argument, double unit) const {
  unsigned value = 0;
  const auto ask = function<int (*)(void*, int, unsigned*)>(name);
  return gpu_ != nullptr && ask != nullptr && ask(gpu_, argument, &value) == success ? value * unit : -1;
}

std::vector<Reading> GpuMonitor::readings() const {
  unsigned milliwatts = 0;
  unsigned long long reasons = 0;
  const auto power = function<int (*)(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
  const auto why = function<int (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  const bool has_power = gpu_ != nullptr && power != nullptr && power(gpu_, &milliwatts) == success;
  const bool has_reasons = gpu_ != nullptr && why != nullptr && why(gpu_, &reasons) == success;
  return {{"sm_clock_mhz", number("nvmlDeviceGetClockInfo", sm_clock, 1)},
          {"memory_clock_mhz", number("nvmlDeviceGetClockInfo", memory_clock, 1)},
          {"power_watts", has_power ? milliwatts * 1e-3 : -1},
          {"temperature_celsius", number("nvmlDeviceGetTemperature", core_temperature, 1)},
          {"throttle_reasons", has_reasons ? static_cast<double>(reasons) : -1}};
}

std::string GpuMonitor::driver() const {
  char text[96] = "";
  const auto ask = function<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (ask != nullptr) ask(text, sizeof text);
  return text;
}

}  // namespace baton
