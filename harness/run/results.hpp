// SPDX-License-Identifier: Apache-2.0
// How the cases of a run ended, launch by launch.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/record/result.hpp"
#include "harness/run/channel.hpp"

namespace baton {

/// How a case ended; `invalid` means a wrong schedule, and `wrong` a wrong result.
enum class Outcome { timed, skipped, invalid, wrong, failed };

Outcome outcome_of(const Result& result);

/// The results of all cases in all launches of a run.
class Results {
 public:
  /// The launch that was started last, from 1; 0 before the first.
  int launch() const { return launch_; }
  /// True if the present launch runs its cases in reverse order: every other one, so that what
  /// drifts within a launch cancels. It does not depend on how many launches there will be.
  bool is_reversed() const { return launch_ % 2 == 0; }
  /// How often the present launch was started: again after a case that its processes did not
  /// survive.
  int starts() const { return starts_; }
  void start_launch(int launch);

  /// Notes that all processes of the present launch have found one another.
  void meet() { have_met_ = true; }
  bool have_met() const { return have_met_; }

  /// Notes that case `index` begins in the present launch.
  void begin(int index) { running_ = index; }
  /// Notes that case `index` ended in the present launch.
  void end(int index, Result result);
  void announce(const Notice& notice) { notices_.push_back(notice); }

  /// The notices of the run, in their order.
  const std::vector<Notice>& notices() const { return notices_; }

  /// How case `index` ended in `launch`; null if it has not.
  const Result* result(int launch, int index) const;
  /// The last launch in which case `index` ended; 0 if it has not.
  int last_launch(int index) const;

  /// True if case `index` need not run in the present launch, or in the given one: it has ended
  /// there, or it ended without a time in any launch.
  bool is_settled(int index) const { return is_settled(launch_, index); }
  bool is_settled(int launch, int index) const;
  /// True if all of `cases` cases need not run in `launch`.
  bool is_complete(int launch, int cases) const;
  /// The cases that have to run in the present launch, of so many, in the order in which they do.
  std::vector<int> unsettled(int cases) const;

  /// The case that began in the present launch and has not ended, if there is one.
  std::optional<int> running() const { return running_; }

  /// The number of results of all launches.
  std::size_t count() const { return results_.size(); }

  /// Prints the cases that were wrong or failed, the worst first. Returns the exit code of the run:
  /// that of the worst, or else 0, or ExitCode::skipped if all are skipped, which a line then says.
  int summary(const std::vector<Case>& cases) const;

 private:
  int launch_ = 0;
  int starts_ = 0;
  bool have_met_ = false;
  std::optional<int> running_;
  std::vector<Notice> notices_;
  std::map<std::pair<int, int>, Result> results_;  // by launch and case
  std::set<int> given_up_;                         // cases that ended without a time
};

}  // namespace baton
