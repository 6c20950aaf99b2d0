// SPDX-License-Identifier: Apache-2.0
// A grid of points: all combinations of the values that flags give to its axes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/options/flags.hpp"
#include "harness/options/names.hpp"

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

/// Flags that are the axes of a grid: each takes a list, and a point has one value of each.
template <class Point>
class AxisFlags {
 public:
  /// Declares the flags among `flags`, which must outlive this.
  explicit AxisFlags(Flags& flags) : flags_(flags) {}

  /// Declares the flag of a key with its default values; `set(point, value)` gives a point one of
  /// them. The flag that is declared last changes fastest.
  template <class Value, class Set>
  Flag add(schema::Key key, std::vector<Value> values, const Set& set, const std::string& alias = {}) {
    const auto kept = std::make_shared<std::vector<Value>>(std::move(values));
    axes_.push_back([=](Grid<Point>& grid) { grid.vary(std::string(key.field().flag), *kept, set); });
    return flags_.add_key(key, *kept, alias).list();
  }

  /// The same for words, which are names among `known` unless they are the default ones; 'all'
  /// stands for all names.
  template <class Set>
  Flag add(schema::Key key, const std::vector<std::string>& words, const std::vector<std::string>& known,
           const Set& set) {
    const std::string what(key.field().flag.substr(2));
    return add(
        key, words, [=](const auto& given) { return resolve_names(what, given, known); }, set);
  }

  /// The same for words of which `resolve(words)` makes the values, but for the default ones.
  template <class Resolve, class Set>
  requires std::is_invocable_v<Resolve, std::vector<std::string>> Flag
  add(schema::Key key, const std::vector<std::string>& words, const Resolve& resolve, const Set& set) {
    const auto kept = std::make_shared<std::vector<std::string>>(words);
    axes_.push_back([=](Grid<Point>& grid) {
      grid.vary(std::string(key.field().flag), *kept == words ? words : resolve(*kept), set);
    });
    return flags_.add_key(key, *kept).list();
  }

  /// All combinations of the values that the user gave, as changes of `first`. Throws UsageError.
  std::vector<Point> points(const Point& first) const {
    Grid<Point> grid(first);
    for (const auto& vary : axes_) vary(grid);
    return grid.points();
  }

 private:
  Flags& flags_;
  std::vector<std::function<void(Grid<Point>&)>> axes_;
};

}  // namespace baton
