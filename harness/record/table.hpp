// SPDX-License-Identifier: Apache-2.0
// Tables: the columns that one chose, and the lines that they make of records.
#pragma once

#include <string>
#include <vector>

#include "harness/record/columns.hpp"

namespace baton {

struct Case;

/// A bench's table. docs/metrics.md explains its columns.
struct Table {
  /// The columns that say what a case is; a skipped row has them too.
  std::vector<Column> bench_case;
  std::vector<Column> answer;
  /// True if no line is longer than a terminal's: reasons are then broken into several.
  bool fits_terminal = false;

  /// The two lines above the rows: titles and units.
  std::string head() const;
  /// The line of a row. A case without times has its reason in place of the answer's columns.
  std::string row(const Row& row) const;
};

/// All columns of the bench that has cases like `one`, for names of at most `longest_name`
/// characters, in the last of `launches` launches.
Table wide_table(const Case& one, int longest_name, int launches);

/// The default table of `cases`, which are of one bench and all simulated or none, in `launches`
/// launches: at most 100 columns, among which are those that differ between rows of a contest.
Table fitted_table(const std::vector<Case>& cases, int launches);

}  // namespace baton
