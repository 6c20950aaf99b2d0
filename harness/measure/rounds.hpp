// SPDX-License-Identifier: Apache-2.0
// The timing of rounds.
//
//   isolated:  before every round all ranks start together; a round is the slowest rank's time
//   streaming: all ranks start together once; rounds follow back to back with no word between the ranks
//   graph:     the same with rounds that a device recorded and replays; a round is a recording's mean
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "harness/cases/case.hpp"
#include "harness/process/launch.hpp"

namespace baton {

/// Every rank's every round of one case.
struct Samples {
  /// Seconds of the first round of all, which is warm-up: it pays for connections and lazy loading. Empty without
  /// warm-up.
  std::optional<double> first_seconds;
  /// One value a round: the maximum over ranks.
  std::vector<double> seconds;
  /// One row a process, one value a round.
  std::vector<std::vector<double>> rank_seconds;
  /// What the devices showed before the warm-up and right after the last round; one row a process.
  std::vector<std::string> reading_names;
  std::vector<std::vector<double>> readings_before;
  std::vector<std::vector<double>> readings_after;
};

/// Runs the rounds of one case, one a call.
class Rounds {
 public:
  Rounds(Executor& executor, const Team& team, Cadence cadence, int rounds);

  void warm_up(int rounds);

  /// Seconds of the next round, the maximum over ranks.
  double next();

  /// All rounds that were run. Collective.
  Samples samples() const;

 private:
  double run_once(bool as_recorded);
  void run_stream();
  std::vector<double> read_devices() const;

  Executor& executor_;
  const Team& team_;
  Cadence cadence_;
  int rounds_;
  std::vector<double> readings_before_;
  std::optional<double> first_seconds_;
  std::vector<double> mine_;     // this process's seconds
  std::vector<double> seconds_;  // the slowest rank's
  std::size_t handed_out_ = 0;
};

}  // namespace baton
