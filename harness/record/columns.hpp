// SPDX-License-Identifier: Apache-2.0
// The columns that tables choose from. Title and unit of a key's column are those of the schema.
#pragma once

#include <functional>
#include <string>

#include "harness/record/fields.hpp"

namespace baton {

struct Record;

struct Column {
  std::string title;
  /// The unit, or an empty string.
  std::string unit;
  /// Characters; negative for text that is aligned to the left.
  int width = 8;
  std::function<std::string(const Record&)> cell;

  Column titled(std::string other) const;
  Column in(std::string other_unit) const;
  Column of_width(int other) const;
};

/// Whether a cell has all digits, or is short enough for a table that fits a terminal.
enum class Form { full, brief };

/// The column of a key. Seconds are shown as microseconds and rates as GB/s. Throws
/// std::logic_error if tables do not show the key.
Column column(schema::Key key, Form form = Form::full);

/// The bound in percent of the median.
Column bound_share();

/// The time over that of the fastest row of the contest.
Column against_the_fastest();

/// The median of a model's round in milliseconds.
Column step_time();

/// The tokens of a rank over the median.
Column token_rate();

/// Model flops utilisation: what the tokens need over what the rank could have done.
Column flops_utilisation();

/// The time over that of the data-parallel line.
Column time_over_dp();

}  // namespace baton
