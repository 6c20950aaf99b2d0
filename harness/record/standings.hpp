// SPDX-License-Identifier: Apache-2.0
// How cases compare with others of their group, in one launch and over all of a run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {

/// Medians of one layer in its three modes in one launch, in seconds.
struct ModeTimes {
  double overlapped = 0, exposed = 0, compute_only = 0;
};

/// The place of a case in its comparison group, and what its exchange costs.
struct Standing {
  /// Time over the baseline's time.
  std::optional<Ratio> ratio;
  /// The share of an overlapped layer's exchange that local work hid; docs/metrics.md.
  std::optional<double> hidden;
  /// The median seconds in one launch from which `hidden` follows.
  std::optional<ModeTimes> modes;
  /// Seconds that a model's exchange costs: the line "full" less the line "split".
  std::optional<double> exposed_seconds;
};

/// The place of a row among the rows of its contest.
struct Place {
  /// True for the fastest row.
  bool is_best = false;
  /// Time over that of the fastest row.
  std::optional<Ratio> ratio;
};

/// The results of a case over all launches so far, at least two.
struct OverLaunches {
  int launches = 0;
  Summary summary;
  Standing standing;
};

/// How the timed cases of a run compare: launch by launch, and over all launches.
class Standings {
 public:
  /// Makes standings of `cases`, which must outlive them. Ratios refer to the workload called
  /// `baseline`, which may be empty.
  Standings(const std::vector<Case>& cases, std::string baseline);

  /// Adds the seconds of the rounds of case `index` in `launch`, once.
  void add(int launch, int index, const std::vector<double>& seconds);

  /// Compares case `index` with those of its group that were timed in the same launch. The standing
  /// is empty if the case was not timed.
  Standing standing(int launch, int index) const;
  /// The results of a case over all launches that timed it; nothing for fewer than two.
  std::optional<OverLaunches> over_launches(int index) const;
  /// The time of a case over that of case `to`, in the launches that timed both: formed launch by
  /// launch, or with the interval of the only launch. Nothing without such a launch.
  std::optional<Ratio> ratio(int index, int to) const;

 private:
  struct Timed {
    std::vector<double> seconds;
    double median = 0;
  };
  using Launch = std::map<int, Timed>;  // by case

  std::optional<Ratio> ratio_to_baseline(const Launch& launch, int index) const;
  std::optional<double> median_of(const Launch& launch, int index, const std::string& variant) const;

  const std::vector<Case>& cases_;
  std::string baseline_;
  std::map<std::string, std::vector<int>> groups_;  // the cases of each comparison group
  std::vector<const std::vector<int>*> group_of_;   // by case
  std::map<int, Launch> launches_;
};

/// The results of a case over the launches that timed it, from the seconds of its rounds and its
/// standing in each. Nothing for fewer than two launches.
std::optional<OverLaunches> over_launches(const std::vector<std::vector<double>>& seconds,
                                          const std::vector<Standing>& standings);

}  // namespace baton
