// SPDX-License-Identifier: Apache-2.0
// What became of the cases of a run, launch by launch. It is kept in a file, because a launch that
// crashes takes its memory with it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"

namespace baton {

/// How a case ended in one launch.
struct Outcome {
  /// `begun` remains if its processes did not survive the case; `invalid` is a schedule that is
  /// wrong, and `wrong` a result.
  enum class State { begun, timed, skipped, invalid, wrong, failed };

  State state = State::begun;
  /// One value for each round: the maximum over ranks; empty unless it was timed.
  std::vector<double> seconds;
  /// Why it was skipped, is wrong, or failed.
  std::string reason;
};

/// The outcomes of all cases in all launches of a run.
class Ledger {
 public:
  /// Reads what `path` already holds; an empty path stands for no file. Throws SystemError if the
  /// file cannot be read.
  explicit Ledger(std::string path = {});

  /// The name of the run, which all its records share. Made at the first call.
  const std::string& run();

  /// The launch that was started last, from 1; 0 before the first.
  int launch() const { return launch_; }
  /// How often that launch was started: again after a case that its processes did not survive.
  int starts() const { return starts_; }
  void start_launch(int launch);

  /// Notes that `outcome` is how case `index` ended in the present launch, or that it begins.
  void note(int index, const Outcome& outcome);

  /// How case `index` ended in `launch`; null if it has not begun.
  const Outcome* outcome(int launch, int index) const;

  /// True if case `index` need not run in the present launch, or in `launch`: it has run there, or
  /// was never timed where it ran.
  bool is_settled(int index) const { return is_settled(launch_, index); }
  bool is_settled(int launch, int index) const;

  /// True if all of `cases` cases need not run in `launch`.
  bool is_complete(int launch, int cases) const;

  /// Throws WrongResult or ScheduleError if a case of the present launch was wrong or failed.
  void require_good(const std::vector<Case>& cases) const;

  /// The case that began in the present launch and did not end, if there is one.
  std::optional<int> unfinished() const;

  /// The number of outcomes of all launches, but for cases that only began.
  std::size_t ended() const;

  /// Takes over the outcomes that the records of `journal` hold for `cases`, and the name of their
  /// run. Failed cases are left out, so that they run again. Throws UsageError if a record was made
  /// by another commit or on another host, is of a launch beyond `launches`, or lacks a key.
  void resume(const std::string& journal, const std::vector<Case>& cases, const std::string& host,
              int launches);

 private:
  void append(const std::string& line) const;
  void take_over(int launch, int index, const Outcome& outcome);
  void read(const std::string& line);
  void count_launch(int launch);

  std::string path_;
  std::string run_;
  int launch_ = 0;
  int starts_ = 0;
  std::map<std::pair<int, int>, Outcome> outcomes_;  // by launch and case
};

}  // namespace baton
