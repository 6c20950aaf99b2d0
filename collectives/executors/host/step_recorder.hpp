// SPDX-License-Identifier: Apache-2.0
// Notes when one rank's steps start and finish, for a single round; all other rounds pay one predictable branch.
#pragma once

#include <chrono>
#include <vector>

#include "collectives/executors/timeline.hpp"

namespace baton {

/// Seconds on the monotonic clock, which all processes of a host share.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Steps may be noted by any thread, each by one thread.
class StepRecorder {
 public:
  /// Takes its memory now, so that no round does. Notes nothing yet.
  StepRecorder(int rank, int steps) {
    for (int step = 0; step < steps; ++step) times_.push_back({.rank = rank, .step = step});
  }

  void record(bool on) { records_ = on; }

  void starts(int step) {
    if (records_) times_[step].start_seconds = monotonic_seconds();
  }
  void finishes(int step) {
    if (records_) times_[step].finish_seconds = monotonic_seconds();
  }

  /// One entry a step, on the monotonic clock.
  const std::vector<StepTime>& times() const { return times_; }

 private:
  bool records_ = false;
  std::vector<StepTime> times_;
};

}  // namespace baton
