// SPDX-License-Identifier: Apache-2.0
// How far a run is, for people who wait for it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/run/heading.hpp"

namespace baton {

class Results;

/// How far a run is, and how long it will still take, from the times at which its cases began.
class Progress {
 public:
  /// Makes the progress of a run of `cases`, which must outlive it. `clock` returns seconds.
  Progress(const std::vector<Case>& cases, std::function<double()> clock);

  /// Looks at what runs now. To be called when a case begins or ends.
  void look(const Results& results);

  /// The case that runs, such as "launch 2 of 3, case 5 of 60 (all_scan on mpi, 2 ranks, 2M)", with
  /// all that tells it from the others, for a run of `launches` launches; 0 if that is not known
  /// yet. Empty if no case runs.
  std::string what(const Results& results, int launches) const;
  /// How long the run will still take, such as ": about 40 s left"; empty if that is not known.
  std::string left(const Results& results, int launches) const;

 private:
  struct Sum {
    double seconds = 0;
    int count = 0;
  };
  void note(int index, double seconds);
  double expected(int index) const;
  std::optional<double> seconds_left(const Results& results, int launches) const;

  const std::vector<Case>& cases_;
  Differences differences_;
  std::function<double()> clock_;
  std::optional<int> running_;
  double began_ = 0;
  double launch_began_ = 0, start_seconds_ = 0;
  bool is_starting_ = false;  // no case of the launch has begun
  int launch_ = 0;
  std::map<int, double> seconds_;                     // of cases that have ended, the last time
  std::map<std::pair<std::string, int>, Sum> alike_;  // the same by executor and ranks
  Sum all_;
};

/// Shows lines on standard error: on a terminal in place of one another, elsewhere one a case, and
/// at most one every ten seconds.
class ProgressLine {
 public:
  /// Shows nothing if `is_showing` is false. `clock` returns seconds.
  ProgressLine(bool is_showing, std::function<double()> clock);

  /// True if `show` would show a line now.
  bool is_due() const;
  /// Shows what runs, and how long it will still take.
  void show(const std::string& what, const std::string& left);
  /// Erases the line, so that something else can be printed.
  void clear();

 private:
  bool is_showing_, is_terminal_;
  std::function<double()> clock_;
  bool is_shown_ = false;
  double last_;
  std::string shown_;  // what ran when a line was shown last
};

/// A duration such as "40 s", "12 min" or "3.5 h".
std::string duration(double seconds);

}  // namespace baton
