// SPDX-License-Identifier: Apache-2.0
// The table: the only place where its columns are described. docs/metrics.md derives them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/record.hpp"

namespace baton {

struct Column {
  std::string title;
  /// Unit, or an empty string.
  std::string unit;
  /// Characters; negative for text that is set flush left.
  int width = 8;
  std::function<std::string(const Record&)> cell;
};

const std::vector<Column>& columns();

/// The two lines above the rows: titles and units.
std::string table_head();

/// One row. A skipped case shows its reason after the columns that say what it was.
std::string table_row(const Record& record);

}  // namespace baton
