// SPDX-License-Identifier: Apache-2.0
// Tables: their columns, each of which makes a cell of a record, and the numbers, sizes and lines
// that they consist of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/report/record.hpp"

namespace baton {

struct Column {
  std::string title;
  /// The unit, or an empty string.
  std::string unit;
  /// Characters; negative for text that is aligned to the left.
  int width = 8;
  std::function<std::string(const Record&)> cell;
};

/// A bench's table. docs/metrics.md explains its columns.
struct Table {
  /// The columns that say what a case is; a skipped row has them too.
  std::vector<Column> bench_case;
  std::vector<Column> answer;
  /// True if no line is longer than a terminal's: reasons are then broken into several.
  bool fits_terminal = false;

  /// The two lines above the rows: titles and units.
  std::string head() const;
  /// One row. A case without times has its reason in place of the answer's columns.
  std::string row(const Record& record) const;
};

/// The characters of the longest name among a registry's entries.
template <class Entries>
int longest_name(const Entries& entries) {
  std::size_t longest = 0;
  for (const auto* entry : entries) longest = std::max(longest, entry->name.size());
  return static_cast<int>(longest);
}

/// All columns of collective_bench, and of operator_bench whose methods have names of at most
/// `longest_method` characters, but those of `wide`.
const Table& collective_table();
Table operator_table(int longest_method);

/// The table of model_bench, as wide as that of operator_bench.
Table model_table(int longest_method);

/// The answer of a model's row, and its line: "dp", "split" or "full".
std::vector<Column> model_columns();
std::string model_line(const Record& record);

/// The table with percentiles and the last rank behind its own columns.
Table wide(Table table);

/// The default table of `cases`, which are of one bench and all simulated or none, in `launches`
/// launches: at most 100 columns, among which are those that differ between rows of a contest.
Table fitted_table(const std::vector<Case>& cases, int launches);

/// The same table for a run of one launch, whose intervals say nothing about another launch.
Table within_one_launch(Table table);

// Cells.

/// A cell without a value.
inline constexpr auto no_value = "-";

/// Columns that a terminal has; no line of the default table is longer.
inline constexpr int terminal_columns = 100;

/// Four significant digits or all digits before the point, whichever is longer.
std::string number(double value);

/// Microseconds, or seconds with an s from a million microseconds on: at most six characters.
std::string short_time(double seconds);

/// A multiple of 1024^k with its letter, or all digits.
std::string binary_size(std::int64_t bytes);

/// The same, with three digits where all digits would be more than five: at most six characters.
std::string short_size(std::int64_t bytes);

/// The tokens a rank of a layer, the bytes of a rank's state elsewhere.
std::string size_of(const Case& c);

/// "1.234 [1.100,1.300]".
std::string with_interval(const Ratio& ratio);

/// `text` in lines of at most `columns` characters, broken at spaces; each line after the first
/// begins with `indent`. A word that is longer than a line has a line of its own. Ends with a line
/// break.
std::string wrapped(const std::string& text, const std::string& indent, int columns = terminal_columns);

/// The name with its mark: ~ for a simulated row, ! for one whose ranks take turns on a core or a
/// GPU.
std::string marked_name(const Record& record);

/// The executor, and the word "native" where one stood in for the schedule.
std::string run_by(const Record& record);

/// The bound in percent of the median.
std::string share_of_bound(const Record& record);

/// The hidden share of a layer's exchange in percent.
std::string hidden_share(const Record& record);

/// Bytes of all buffers of the rank that has most.
std::string memory(const Record& record);

/// Elements, or tokens a rank times heads, that were compared.
std::string verified_amount(const Record& record);

/// The number of blocks, with * if the model chose it.
std::string blocks_that_ran(const Record& record);

}  // namespace baton
