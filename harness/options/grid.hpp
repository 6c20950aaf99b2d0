// SPDX-License-Identifier: Apache-2.0
// A grid of points: all combinations of the values that flags give to its axes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace baton {

/// The values of the flag. Throws UsageError if one is named twice.
template <class Value>
const std::vector<Value>& distinct(const std::string& flag, const std::vector<Value>& values) {
  for (auto value = values.begin(); value != values.end(); ++value)
    if (std::find(values.begin(), value, *value) != value)
      throw UsageError(fmt::format("{} names {} twice", flag, *value));
  return values;
}

/// All combinations of the values of some axes, as points that have a value of each.
template <class Point>
class Grid {
 public:
  explicit Grid(Point first) : points_{std::move(first)} {}

  /// Gives every point each of the values in turn, by `set(point, value)`; the axis that is varied
  /// last changes fastest. Throws UsageError if a value is named twice, or if the points are more
  /// than anyone can read.
  template <class Value, class Set>
  Grid& vary(const std::string& flag, const std::vector<Value>& values, const Set& set) {
    constexpr std::size_t most = 100000;
    if (points_.size() * distinct(flag, values).size() > most)
      throw UsageError(fmt::format("{} and the lists before it ask for {} combinations, at most {}", flag,
                                   points_.size() * values.size(), most));
    std::vector<Point> all;
    all.reserve(points_.size() * values.size());
    for (const Point& point : points_)
      for (const Value& value : values) set(all.emplace_back(point), value);
    points_ = std::move(all);
    return *this;
  }

  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

}  // namespace baton
