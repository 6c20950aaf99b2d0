// SPDX-License-Identifier: Apache-2.0
// What a run prints: a heading, the rows of each contest when it is over, and meanwhile how far the
// run is. It reads the ledger, so that a launch that dies takes no row with it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/options/options.hpp"
#include "harness/record/prediction_errors.hpp"
#include "harness/record/record.hpp"
#include "harness/record/standings.hpp"
#include "harness/record/table.hpp"
#include "harness/run/ledger.hpp"

namespace baton {

/// The indices of the cases of each contest, in their order.
std::vector<std::vector<int>> contests_of(const std::vector<Case>& cases);

/// The timed cases of all launches of a run.
class Launches {
 public:
  /// `cases` must outlive it. Ratios of standings refer to the workload called `baseline`.
  Launches(const std::vector<Case>& cases, std::string baseline)
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
                                const Ledger& ledger, const Launches& launches);

/// How far a run is, and how long it will still take, from the times at which its cases began.
class Progress {
 public:
  /// `cases` must outlive it. `clock` returns seconds.
  Progress(const std::vector<Case>& cases, std::function<double()> clock);

  /// Looks at what runs now. To be called when a case begins or ends.
  void look(const Ledger& ledger);

  /// "launch 2 of 3, case 5 of 60 (all_scan on mpi, 2 ranks, 2M): about 40 s left", for a run of
  /// `launches` launches; 0 if that is not known yet. Empty if no case runs.
  std::string line(const Ledger& ledger, int launches) const;

 private:
  struct Sum {
    double seconds = 0;
    int count = 0;
  };
  void note(int index, double seconds);
  double expected(int index) const;
  std::optional<double> seconds_left(const Ledger& ledger, int launches) const;

  const std::vector<Case>& cases_;
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

/// Shows lines on standard error: on a terminal in place of one another, elsewhere one at most
/// every ten seconds.
class ProgressLine {
 public:
  /// Shows nothing if `is_showing` is false.
  explicit ProgressLine(bool is_showing);

  /// False where a line would not be shown now.
  bool is_due() const;
  void show(const std::string& line);
  /// Erases the line, so that something else can be printed.
  void clear();

 private:
  bool is_showing_, is_terminal_;
  bool is_shown_ = false;
  double last_;
};

/// "40 s", "12 min", "3.5 h".
std::string duration(double seconds);

/// The lines above the table: the machine, and what all of `options.cases` share. At most 100
/// columns.
std::string heading(const Options& options);

/// What distinguishes the contest of `one` from others of `cases`, but for the columns of the
/// table; may be empty.
std::string contest_title(const std::vector<Case>& cases, const Case& one);

/// Prints a run while it goes on. All that it is given must outlive it.
class Display {
 public:
  /// The last of `launches` launches shows the rows; 0 if their number is not known yet. The times
  /// of the ledger go into `standings`.
  Display(const Options& options, const Ledger& ledger, Launches& standings, int launches);

  /// The number of launches is known.
  void expect(int launches) { launches_ = launches; }
  /// Prints what the ledger holds and was not printed: contests that are over in the last launch.
  void refresh();
  /// Prints all rows that are left, and the lines below the table.
  void finish();
  /// Erases the progress line, before something else is printed.
  void clear() { line_.clear(); }

 private:
  void print(const std::string& text);
  void print_heading();
  bool is_over(std::size_t contest) const;
  void print_contest(const std::vector<int>& contest);
  std::string rows_of(std::span<const Record> records);
  std::string title_of(const Case& one, std::size_t rows);
  std::string warning_of(const std::vector<Record>& records);

  const Options& options_;
  const Ledger& ledger_;
  Launches& standings_;
  int launches_;
  std::vector<std::vector<int>> contests_;
  std::size_t next_contest_ = 0, next_notice_ = 0;
  std::set<std::string> noticed_;
  bool has_heading_ = false, has_warned_ = false;
  std::optional<Table> table_;  // of the rows that were printed last
  bool is_of_simulated_ = false;
  std::size_t rows_before_ = 0;
  Progress progress_;
  ProgressLine line_;
  PredictionErrors prediction_errors_;
};

}  // namespace baton
