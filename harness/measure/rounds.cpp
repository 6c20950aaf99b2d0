// SPDX-License-Identifier: Apache-2.0
// Rounds in all cadences.
#include "harness/measure/rounds.hpp"

#include <algorithm>

namespace baton {

Rounds::Rounds(Executor& executor, const Team& team, Cadence cadence, int rounds)
    : executor_(executor),
      team_(team),
      cadence_(cadence),
      rounds_(rounds),
      readings_before_(read_devices()) {}

void Rounds::warm_up(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const double seconds = run_once(cadence_ == Cadence::graph);
    if (i == 0) first_seconds_ = seconds;
  }
  mine_.clear();
}

double Rounds::next() {
  if (cadence_ != Cadence::streaming) seconds_.push_back(run_once(cadence_ == Cadence::graph));
  if (seconds_.empty()) run_stream();
  return seconds_[handed_out_++];
}

Samples Rounds::samples() const {
  const std::vector<double> now = read_devices();
  Samples samples{first_seconds_, seconds_, team_.gather(mine_)};
  if (now.empty()) return samples;
  for (const Reading& reading : executor_.device()->readings()) samples.reading_names.push_back(reading.name);
  samples.readings_before = team_.gather(readings_before_);
  samples.readings_after = team_.gather(now);
  return samples;
}

std::vector<double> Rounds::read_devices() const {
  std::vector<double> values;
  if (const Device* device = executor_.device())
    for (const Reading& reading : device->readings()) values.push_back(reading.value);
  return values;
}

double Rounds::run_once(bool as_recorded) {
  executor_.synchronise();
  mine_.push_back(as_recorded ? executor_.device()->replay() : executor_.run());
  return team_.max(mine_.back());
}

void Rounds::run_stream() {
  executor_.synchronise();
  mine_ = executor_.stream(rounds_);
  const auto all = team_.gather(mine_);
  for (int i = 0; i < rounds_; ++i) {
    const auto slowest =
        std::max_element(all.begin(), all.end(), [i](auto& a, auto& b) { return a[i] < b[i]; });
    seconds_.push_back((*slowest)[i]);
  }
}

}  // namespace baton
