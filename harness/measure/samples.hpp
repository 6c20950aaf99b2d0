// SPDX-License-Identifier: Apache-2.0
// The times of a case's rounds; docs/metrics.md explains them.
//
//   isolated:  all ranks start every round together; a round is the slowest rank's time
//   streaming: all ranks start together once; rounds follow back to back without a barrier
//   graph:     all ranks start the replay of a recording of several rounds; a round is its mean
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/verify.hpp"

namespace baton {

/// The times of all rounds on all ranks.
struct Samples {
  /// Seconds of the first warm-up round, which pays for connections and lazy loading. Empty without
  /// warm-up.
  std::optional<double> first_seconds;
  /// Seconds of each round: the maximum over ranks.
  std::vector<double> seconds;
  /// Seconds of each round in each process: one row for each process.
  std::vector<std::vector<double>> rank_seconds;
  /// The names of the devices' readings, which were taken before the warm-up and right after the
  /// last round. `readings_before` and `readings_after` have one row for each process.
  std::vector<std::string> reading_names;
  std::vector<std::vector<double>> readings_before;
  std::vector<std::vector<double>> readings_after;
};

/// A check that all rounds of a case leave the same bits.
///
///   before each round:  some elements of every output are poisoned, so that a round that writes
///                       nothing cannot look like the one before it
///   after each round:   a checksum of the outputs, where they lie, is compared with the first one
///
/// Both run outside the clock. All rounds have the same inputs, and no body of ours adds in an
/// order that may change, so results are equal in every bit.
class RoundWatch {
 public:
  /// Watches the ranks of this process. `executor` must outlive it. No checksum is made of the
  /// outputs that `vary` from round to round.
  RoundWatch(Executor& executor, std::span<const Schedule> schedules,
             const std::vector<std::string>& vary = {});

  void before_round();
  /// Compares the outputs with those of the first round. `name` is for people, such as "round 17 of
  /// 50".
  void after_round(const std::string& name);

  /// The number of rounds that left other results than the first one, and a description of the
  /// first.
  const Comparison& found() const { return found_; }
  /// The seconds that this process spent on the checks.
  double seconds() const { return seconds_; }

 private:
  struct Rank {
    int rank;
    std::vector<Slice> outputs;
    std::vector<Slice> covered;  // the outputs that a round must write
    std::optional<std::uint64_t> checksum;
  };

  Executor& executor_;
  std::vector<Rank> ranks_;
  std::string first_round_;
  Comparison found_;
  double seconds_ = 0;
};

/// Runs `warmup` rounds and then `rounds` measured ones. `watch`, if any, looks at each round that
/// stands alone, and at a stream as a whole. Collective over `team`.
Samples measure_rounds(Executor& executor, const Team& team, Cadence cadence, int warmup, int rounds,
                       RoundWatch* watch = nullptr);

/// Runs a round that nobody times, in the given cadence: two rounds of a stream, one replay of a
/// graph.
void run_untimed(Executor& executor, Cadence cadence);

}  // namespace baton
