// SPDX-License-Identifier: Apache-2.0
// The columns that tables choose from. Those of keys have title, width and unit of the schema.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/schema/fields.hpp"

namespace baton {

struct Row;

struct Column {
  std::string title;
  /// The unit, or an empty string.
  std::string unit;
  /// The width in characters; negative for text that is aligned to the left.
  int width = 8;
  std::function<std::string(const Row&)> cell;

  Column titled(std::string other) const;
  Column in(std::string other_unit) const;
  Column of_width(int other) const;
};

/// Whether a cell has all digits, or is short enough for a table that fits a terminal.
enum class Form { full, brief };

/// The column of a key that has a width in the schema. Seconds are shown as microseconds and rates
/// as GB/s.
Column column(schema::Key key, Form form = Form::full);

/// The bound in percent of the median; nothing without a bound or a time.
std::optional<double> share_of_bound(const Row& row);

/// The column of the bound in percent of the median.
Column bound_share();

/// The column of the time over the lowest of the contest.
Column against_the_lowest();

/// The column of the median of a model's round in milliseconds.
Column step_time();

/// The column of the tokens of a rank over the median.
Column token_rate();

/// The column of model flops utilisation: the operations that the tokens need over the peak of the
/// rank, in percent.
Column flops_utilisation();

/// The column of the time over that of the data-parallel line.
Column time_over_dp();

}  // namespace baton
