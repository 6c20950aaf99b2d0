// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/topology/curve_json.hpp"

#include <vector>

#include "collectives/simulator/topology/ranges.hpp"

namespace baton {
namespace {

constexpr std::size_t most_points = 10000;

/// The most bytes a second between two points of a curve. A calibration keeps points in order by
/// steps of a picosecond.
constexpr double steepest = 1e24;

/// Throws if `later` does not come after `earlier`. The `last` point must take longer than the one
/// before it.
void check_order(const JsonSection& point, const Curve::Point& earlier, const Curve::Point& later,
                 bool last) {
  if (later.bytes < earlier.bytes + 1)
    point.refuse("bytes", "expected more than in the point before, by 1 or more");
  if (later.seconds < earlier.seconds) point.refuse("seconds", "expected no less than in the point before");
  const double more = later.seconds - earlier.seconds;
  if (more != 0 && more * steepest < later.bytes - earlier.bytes)
    point.refuse("seconds", "expected at most 1e24 bytes a second more than in the point before");
  if (last && later.seconds == earlier.seconds)
    point.refuse("seconds", "expected more than in the point before, for the curve goes on with that slope");
}

}  // namespace

Curve read_curve(const JsonSection& parent, const std::string& key) {
  Curve curve;
  if (!parent.has(key)) return curve;
  const std::vector<JsonSection> points = parent.sections(key, 2, most_points);
  for (const JsonSection& point : points) {
    point.only({"bytes", "seconds"});
    curve.points.push_back({point.number("bytes", ranges::bytes), point.number("seconds", ranges::seconds)});
    if (const auto& [size, time] = curve.points.back(); time != 0 && time * ranges::rates.most < size)
      point.refuse("seconds", "expected 0, or no more than 1e18 bytes a second");
    const std::size_t count = curve.points.size();
    if (count > 1)
      check_order(point, curve.points[count - 2], curve.points[count - 1], count == points.size());
  }
  return curve;
}

void write_curve(nlohmann::ordered_json& parent, const std::string& key, const Curve& curve) {
  for (const Curve::Point& point : curve.points)
    parent[key].push_back({{"bytes", point.bytes}, {"seconds", point.seconds}});
}

}  // namespace baton
