// SPDX-License-Identifier: Apache-2.0
// What a run prints: a heading, the rows of each contest when it is over, and meanwhile how far the
// run is. It reads the results, so that a launch that dies takes no row with it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/record/prediction_errors.hpp"
#include "harness/record/table.hpp"
#include "harness/run/heading.hpp"
#include "harness/run/progress.hpp"

namespace baton {

class Comparisons;
class Results;
struct Options;
struct Row;

/// Prints a run while it goes on. All arguments of its constructor must outlive it.
class Display {
 public:
  /// The last of `launches` launches shows the rows; 0 if their number is not known yet.
  Display(const Options& options, const Results& results, const Comparisons& comparisons, int launches);

  /// Sets the number of launches, once it is known.
  void expect(int launches) { launches_ = launches; }
  /// Prints the results of the results that were not printed: contests that are over in the last
  /// launch.
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
  std::string rows_of(std::span<const Row> rows);
  std::string title_of(const std::vector<Row>& rows);
  std::string warning_of(const std::vector<Row>& rows);

  const Options& options_;
  const Results& results_;
  const Comparisons& comparisons_;
  int launches_;
  std::vector<std::vector<int>> contests_;
  std::size_t next_contest_ = 0, next_notice_ = 0;
  std::set<std::string> noticed_;
  bool has_heading_ = false, has_warned_ = false;
  std::optional<Table> table_;  // of the rows that were printed last
  bool is_of_simulated_ = false;
  std::size_t rows_before_ = 0;
  bool beats_bound_ = false;       // a row takes less time than its bound
  bool names_impossible_ = false;  // a line says so of one that cannot be
  Differences differences_;
  Progress progress_;
  ProgressLine line_;
  PredictionErrors prediction_errors_;
};

}  // namespace baton
