// SPDX-License-Identifier: Apache-2.0
// One rank's buffers in host memory, and the steps that need no other rank.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The buffers of one schedule, page-aligned, all zeros at first.
class HostMemory {
 public:
  /// Throws SystemError if the memory cannot be allocated.
  explicit HostMemory(const Schedule& schedule);

  std::span<float> view(const Slice& slice);
  std::span<const float> view(const Slice& slice) const;

  /// The memory that `step` writes and reads.
  HostOperands operands(const Step& step);

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::vector<std::unique_ptr<float[], Free>> buffers_;
};

/// The reason why host memory cannot hold the buffers of `schedules`; empty if it can. Host kernels
/// compute in f32 only.
Refusal unsupported_on_host(std::span<const Schedule> schedules);

/// Runs a copy, combine or compute step of `schedule` on its operands.
void run_on_host(const Schedule& schedule, const Step& step, const HostOperands& operands);

}  // namespace baton
