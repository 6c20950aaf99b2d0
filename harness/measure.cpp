// SPDX-License-Identifier: Apache-2.0
// Rounds in both cadences.
#include "harness/measure.hpp"

#include <algorithm>

namespace baton {

Rounds::Rounds(Executor& executor, const Team& team, Cadence cadence, int rounds)
    : executor_(executor), team_(team), cadence_(cadence), rounds_(rounds) {}

void Rounds::warm_up(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const double seconds = run_isolated();
    if (i == 0) first_seconds_ = seconds;
  }
  mine_.clear();
}

double Rounds::next() {
  if (cadence_ == Cadence::isolated) seconds_.push_back(run_isolated());
  if (seconds_.empty()) run_stream();
  return seconds_[handed_out_++];
}

Samples Rounds::samples() const { return {first_seconds_, seconds_, team_.gather(mine_)}; }

double Rounds::run_isolated() {
  executor_.synchronise();
  mine_.push_back(executor_.run());
  return team_.max(mine_.back());
}

void Rounds::run_stream() {
  executor_.synchronise();
  for (int i = 0; i < rounds_; ++i) mine_.push_back(executor_.run());
  const auto all = team_.gather(mine_);
  for (int i = 0; i < rounds_; ++i) {
    const auto slowest =
        std::max_element(all.begin(), all.end(), [i](auto& a, auto& b) { return a[i] < b[i]; });
    seconds_.push_back((*slowest)[i]);
  }
}

}  // namespace baton
