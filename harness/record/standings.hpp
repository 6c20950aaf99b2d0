// SPDX-License-Identifier: Apache-2.0
// How cases compare with others of their group, in one launch and over all of a run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {

/// Medians of one layer in its three modes in one launch, in seconds.
struct ModeTimes {
  double overlapped = 0, exposed = 0, compute_only = 0;
};

/// How a case compares with others of its group.
struct Standing {
  /// Time over the baseline's time.
  std::optional<Ratio> ratio;
  /// The share of an overlapped layer's exchange that local work hid; docs/metrics.md.
  std::optional<double> hidden;
  /// What `hidden` is made from, of a case in one launch.
  std::optional<ModeTimes> modes;
  /// Seconds that a model's exchange costs: the line "full" less the line "split".
  std::optional<double> exposed_seconds;
};

/// How a row stands among those that compete with it.
struct Place {
  /// The fastest of them.
  bool is_best = false;
  /// Time over that of the fastest one.
  std::optional<Ratio> ratio;
};

/// A case in all launches so far, at least two.
struct OverLaunches {
  int launches = 0;
  Summary summary;
  Standing standing;
};

/// The timed cases of one launch by comparison group.
class ComparisonGroups {
 public:
  /// Ratios refer to the workload called `baseline`, which may be empty.
  explicit ComparisonGroups(std::string baseline) : baseline_(std::move(baseline)) {}

  /// Adds a case with the seconds of its rounds.
  void add(const Case& bench_case, const std::vector<double>& seconds);

  /// Compares an added case with those of its group that were added too; nothing for others.
  Standing standing(const Case& bench_case) const;

  /// The seconds of an added case; null for others.
  const std::vector<double>* seconds(const Case& bench_case) const;

 private:
  struct Timed {
    Case bench_case;
    std::vector<double> seconds;
    double median = 0;
  };
  const Timed* find(const Case& bench_case) const;
  std::optional<Ratio> ratio(const Timed& timed) const;
  std::optional<ModeTimes> modes(const Timed& timed) const;
  std::optional<double> exposed_seconds(const Timed& timed) const;

  std::string baseline_;
  std::multimap<std::string, Timed> groups_;
};

/// A case over the launches of its run: the seconds of its rounds and its standing, one of each for
/// a launch that timed it. Nothing for fewer than two launches.
std::optional<OverLaunches> over_launches(const std::vector<std::vector<double>>& seconds,
                                          const std::vector<Standing>& standings);

}  // namespace baton
