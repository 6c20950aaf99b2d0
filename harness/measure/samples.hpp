// SPDX-License-Identifier: Apache-2.0
// The times of a case's rounds, and their statistics; docs/metrics.md explains each.
//
//   isolated:  all ranks start every round together; a round is the slowest rank's time
//   streaming: all ranks start together once; rounds follow back to back without a barrier
//   graph:     all ranks start the replay of a recording of several rounds; a round is its mean
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/timing.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/verify.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// The times of all rounds on all ranks.
struct Samples {
  /// Seconds of the first warm-up round, which pays for connections and lazy loading. Empty without
  /// warm-up.
  std::optional<double> first_seconds;
  /// One value for each round: the maximum over ranks.
  std::vector<double> seconds;
  /// One row for each process, one value for each round.
  std::vector<std::vector<double>> rank_seconds;
  /// The devices' readings before the warm-up and right after the last round; one row for each
  /// process.
  std::vector<std::string> reading_names;
  std::vector<std::vector<double>> readings_before;
  std::vector<std::vector<double>> readings_after;
};

/// Whether all rounds of a case leave the same bits.
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
  /// `name` is for people, such as "round 17 of 50".
  void after_round(const std::string& name);

  /// How many rounds left other results than the first one, and the first of them.
  const Comparison& found() const { return found_; }
  /// The seconds that this process spent here.
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
Samples measure_rounds(Executor& executor, const Team& team, TimingMode timing, int warmup, int rounds,
                       RoundWatch* watch = nullptr);

/// One round that nobody times, in the same cadence: two rounds of a stream, one replay of a graph.
void run_untimed(Executor& executor, TimingMode timing);

using Interval = std::array<double, 2>;

/// Statistics of the rounds of a case, in seconds.
struct Summary {
  double mean = 0;
  double median = 0;
  Interval ci95{};
  double min = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

/// Summarises at least one round.
Summary summarise(const std::vector<double>& seconds);

/// A distribution-free interval that covers the median with at least 95 %: the order statistics l
/// and n+1-l with the largest l for which Binomial(n, 1/2) is below l with at most 2.5 %. For n =
/// 50 these are 18 and 33 (96.7 %). Below n = 6 no interval covers as much, and the whole range is
/// returned.
Interval median_ci95(std::vector<double> values);

/// A ratio of medians and its interval.
struct Ratio {
  double value = 0;
  Interval ci95{};
};

/// median(a) / median(b) with the 95 % interval of the percentile bootstrap: 2000 resamples, fewer
/// from 5000 rounds on, with a fixed seed.
Ratio ratio_of_medians(const std::vector<double>& a, const std::vector<double>& b);

/// The estimate and the 95 % interval of positive numbers, one from each launch: their geometric
/// mean, and Student's t on their logarithms. At least two.
Ratio over_launches(const std::vector<double>& values);

/// One case in at least two launches, each with the seconds of its rounds. The median and its
/// interval are those of the launches' medians; the rest is of all rounds together.
Summary summarise_launches(const std::vector<std::vector<double>>& seconds);

}  // namespace baton
