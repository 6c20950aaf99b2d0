// SPDX-License-Identifier: Apache-2.0
// An executor of all ranks on one GPU: it runs device bodies in the schedules of any number of
// ranks.
#pragma once

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/host/one_process.hpp"

namespace baton {

class RanksOnOneGpu : public OneProcessExecutor<DeviceMemory> {
 public:
  using OneProcessExecutor::memory_of;
  using OneProcessExecutor::OneProcessExecutor;
  using OneProcessExecutor::prepared;

  Refusal unsupported(std::span<const Schedule> schedules) const override {
    for (const Schedule& schedule : schedules)
      if (const Refusal refusal = lacks_device_body(schedule)) return refusal;
    return {};
  }

  void synchronise() override { cuda(cudaDeviceSynchronize()); }
  double run() override {
    for (const Turn& turn : order()) take(turn);
    cuda(cudaDeviceSynchronize());
    return 0;
  }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

 private:
  void deliver(DeviceMemory& receiver, const Slice& into, const DeviceMemory& sender,
               const Slice& from) override {
    cuda(cudaMemcpyAsync(receiver.at(into), sender.at(from), static_cast<std::size_t>(from.bytes()),
                         cudaMemcpyDeviceToDevice, nullptr));
  }
  void run_local(const Schedule& schedule, const Step& step, DeviceMemory& memory) override {
    run_on_device(nullptr, schedule, step, memory.operands(step));
  }
};

}  // namespace baton
