// SPDX-License-Identifier: Apache-2.0
// Memory in which the steps of a recorded schedule run one by one and are timed, and what the parts
// of kernels_bench add before `main`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The buffers of one schedule on a processor or on a device.
class StepTimer {
 public:
  virtual ~StepTimer() = default;
  virtual void write(const Slice& into, std::span<const float> values) = 0;
  /// Runs a copy, combine or compute step and returns its seconds.
  virtual double seconds(const Step& step) = 0;
};

/// Sizes of one rank's share: of a layer, and of a model that is `heads` such heads wide.
struct StepSizes {
  std::int64_t tokens, heads, width;
  Dtype dtype;
};

/// The parts of kernels_bench that not every build has.
struct TimedParts {
  /// Makes the timer of a schedule on a GPU, or returns null if a body is missing there. Empty in a
  /// program without GPUs.
  std::function<std::unique_ptr<StepTimer>(const Schedule&)> on_device;
  /// Records a model. Empty in a program without models.
  std::function<Schedule(const StepSizes&)> model;
};

inline TimedParts& timed_parts() {
  static TimedParts parts;
  return parts;
}

/// Sets a part before `main`.
struct RegisteredPart {
  template <class Part>
  RegisteredPart(Part TimedParts::*which, std::type_identity_t<Part> part) {
    timed_parts().*which = std::move(part);
  }
};

}  // namespace baton
