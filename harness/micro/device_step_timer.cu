// SPDX-License-Identifier: Apache-2.0
// Times of single steps on a GPU, between two events.
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "harness/micro/step_timer.hpp"

namespace baton {
namespace {

class DeviceStepTimer : public StepTimer {
 public:
  explicit DeviceStepTimer(const Schedule& schedule) : schedule_(schedule), memory_(schedule) {}
  void write(const Slice& into, std::span<const float> values) override { memory_.write(into, values); }
  double seconds(const Step& step) override {
    const DeviceOperands operands = memory_.operands(step);
    return watch_.time(nullptr, [&] { run_on_device(nullptr, schedule_, step, operands); });
  }

 private:
  const Schedule& schedule_;
  DeviceMemory memory_;
  Stopwatch watch_;
};

std::unique_ptr<StepTimer> make(const Schedule& schedule) {
  if (lacks_device_body(schedule)) return nullptr;
  return std::make_unique<DeviceStepTimer>(schedule);
}

const RegisteredPart on_device(&TimedParts::on_device, make);

}  // namespace
}  // namespace baton
