// SPDX-License-Identifier: Apache-2.0
// What a GPU's driver tells about it: clocks, power, and why the clocks are held down.
#pragma once

#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"

namespace baton {

/// NVML for the current GPU. The library comes with the driver and not with the toolkit, so it is looked for when the
/// program runs; without it there is nothing to tell, and no error.
class GpuMonitor {
 public:
  GpuMonitor();
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// sm_clock_mhz, memory_clock_mhz, power_watts, temperature_celsius, and throttle_reasons, NVML's mask of bits (1: idle,
  /// 4: power cap, 8 and above: slow-downs). -1 where the driver does not say.
  std::vector<Reading> readings() const;
  /// The driver's version, or an empty string.
  std::string driver() const;

 private:
  template <class Function>
  Function function(const char* name) const;
  double number(const char* function, int argument, double unit) const;

  void* library_ = nullptr;
  void* gpu_ = nullptr;
};

}  // namespace baton
