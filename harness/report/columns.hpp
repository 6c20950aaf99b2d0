// SPDX-License-Identifier: Apache-2.0
// Tables: the only place where columns are described. docs/metrics.md derives them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/record.hpp"

namespace baton {

struct Column {
  std::string title;
  /// Unit, or an empty string.
  std::string unit;
  /// Characters; negative for text that is set flush left.
  int width = 8;
  std::function<std::string(const Record&)> cell;
};

/// A bench's table.
struct Table {
  /// What a case was: these columns stand in a skipped row too.
  std::vector<Column> question;
  std::vector<Column> answer;

  /// The two lines above the rows: titles and units.
  std::string head() const;
  /// One row. A skipped case shows its reason after the columns that say what it was.
  std::string row(const Record& record) const;
};

/// The table of collective_bench.
const Table& collective_table();
/// The table of operator_bench.
const Table& operator_table();

}  // namespace baton
