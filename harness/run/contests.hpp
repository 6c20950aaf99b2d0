// SPDX-License-Identifier: Apache-2.0
// Which cases of a run compete, and how they stand.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/record/record.hpp"

namespace baton {

class Ledger;

/// The indices of the cases of each contest, in their order.
std::vector<std::vector<int>> contests_of(const std::vector<Case>& cases);

/// How the timed cases of a run compare, launch by launch and over all launches.
class RunStandings {
 public:
  /// `cases` must outlive it. Ratios of standings refer to the workload called `baseline`.
  RunStandings(const std::vector<Case>& cases, std::string baseline)
      : cases_(cases), baseline_(std::move(baseline)) {}

  /// Adds what case `index` took in `launch`, once.
  void add(int launch, int index, const std::vector<double>& seconds);
  /// Adds all outcomes that `ledger` holds.
  void add(const Ledger& ledger);

  /// How the case compares with its group in one launch.
  Standing standing(int launch, int index) const;
  /// Nothing for fewer than two launches.
  std::optional<OverLaunches> over_launches(int index) const;
  /// The time of a case over that of case `to`, in the launches that timed both: formed launch by
  /// launch, or with the interval of the only launch. Nothing without such a launch.
  std::optional<Ratio> ratio(int index, int to) const;

 private:
  const std::vector<Case>& cases_;
  std::string baseline_;
  std::set<std::pair<int, int>> added_;
  std::map<int, ComparisonGroups> groups_;  // by launch
};

/// The mode of a layer; empty for a collective.
std::string mode_of(const Record& record);

/// The rows of a contest, of layers mode by mode: first those that run as they were published, then
/// those that wait for the exchange, then those without one. Within a mode the fastest is at the
/// top, and rows without times at the end. The best of the contest is its first timed row. Cases
/// without an outcome are left out.
std::vector<Record> ranked_rows(const std::vector<int>& contest, const std::vector<Case>& cases,
                                const Ledger& ledger, const RunStandings& launches);

}  // namespace baton
