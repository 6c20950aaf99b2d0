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

/// How a case compares with the baseline and with its own other modes. What has a median in each of
/// several launches enters by the geometric mean of these.
struct Relative {
  /// Time over that of the baseline's row `ratio_to`.
  std::optional<Ratio> ratio;
  /// The share of an overlapped layer's exchange that local work hid; docs/metrics.md.
  std::optional<double> hidden;
  /// Seconds that a model's exchange costs: the line "full" less the line "split".
  std::optional<double> exposed_seconds;
  /// The row of the baseline that `ratio` refers to, such as "zeco overlapped, 8 blocks".
  std::string ratio_to;
};

/// The bound of a case over all launches that timed it, since each measures the link anew.
struct BoundOverLaunches {
  double seconds = 0;
  /// The bound over the time, launch by launch; empty for a single launch.
  std::optional<Ratio> share;
};

/// The results of a case over all launches so far, at least two.
struct OverLaunches {
  int launches = 0;
  Summary summary;
  Relative relative;
};

/// How the timed cases of a run compare: launch by launch, and over all launches.
class Comparisons {
 public:
  /// Compares `cases`, which must outlive the comparisons. Ratios refer to the workload called
  /// `baseline`, which may be empty.
  Comparisons(const std::vector<Case>& cases, std::string baseline);

  /// Adds the seconds of the rounds of case `index` in `launch`, and the bound there, once.
  void add(int launch, int index, const std::vector<double>& seconds,
           const std::optional<double>& bound_seconds = {});

  /// Compares case `index` with those of its group that were timed in the same launch. The result
  /// is empty if the case was not timed.
  Relative in_launch(int launch, int index) const;
  /// The results of a case over all launches that timed it; nothing for fewer than two.
  std::optional<OverLaunches> over_launches(int index) const;
  /// The bound of a case; nothing if a launch that timed it has none.
  std::optional<BoundOverLaunches> bound(int index) const;
  /// The time of a case over that of case `to`, in the launches that timed both: formed launch by
  /// launch, or with the interval of the only launch. Nothing without such a launch. A case takes
  /// exactly as long as itself.
  std::optional<Ratio> ratio(int index, int to) const;

 private:
  struct Timed {
    std::vector<double> seconds;
    double median = 0;
    std::optional<double> bound_seconds;
  };
  using Launch = std::map<int, Timed>;  // by case

  /// The comparison by the launches with these numbers, each of which timed the case.
  Relative relative_in(const std::vector<int>& launches, int index) const;
  /// The numbers of the launches that timed all of these cases, among `launches`.
  std::vector<int> with_all(const std::vector<int>& launches, const std::vector<int>& cases) const;
  /// The geometric mean of the medians of a case in these launches.
  double typical(const std::vector<int>& launches, int index) const;
  std::optional<int> baseline_of(const std::vector<int>& launches, int index) const;
  std::optional<int> sibling(int index, Variant variant) const;
  std::optional<double> hidden_share(const std::vector<int>& launches, int index) const;
  std::optional<double> exposed_seconds(const std::vector<int>& launches, int index) const;
  std::optional<Ratio> ratio_in(const std::vector<int>& launches, int index, int to) const;
  std::vector<int> launches_of(int index) const;

  const std::vector<Case>& cases_;
  std::string baseline_;
  std::map<std::string, std::vector<int>> groups_;  // the cases of each comparison group
  std::vector<const std::vector<int>*> group_of_;   // by case
  std::map<int, Launch> launches_;
};

}  // namespace baton
