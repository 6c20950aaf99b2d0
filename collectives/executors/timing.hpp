// SPDX-License-Identifier: Apache-2.0
// Times of a host: its clock, the times of the steps of one round, and the median of measurements.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace baton {

/// Seconds on the monotonic clock, which all processes of a host share.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The median of at least one value. Of an even number it is the mean of the middle two.
inline double median(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return values.size() % 2 ? *half : (*std::max_element(values.begin(), half) + *half) / 2;
}

/// One step of one rank's schedule, in seconds since the common start of its round.
struct StepTime {
  int rank = 0;
  /// Index of the step in the rank's schedule.
  int step = 0;
  /// Start of the step. A message starts when it is handed to the library beneath, even if its
  /// sender is not ready yet.
  double start_seconds = 0;
  /// End of the step. A message ends when this rank knows that it is complete.
  double finish_seconds = 0;
};

/// Records when one rank's steps start and finish in a single round. In all other rounds a call
/// costs one predictable branch. Different threads may record different steps.
class StepRecorder {
 public:
  /// Allocates its memory now, so that no round does. Records nothing until `record(true)`.
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

  /// Times of the steps, one entry a step, on the monotonic clock.
  const std::vector<StepTime>& times() const { return times_; }

 private:
  bool records_ = false;
  std::vector<StepTime> times_;
};

}  // namespace baton
