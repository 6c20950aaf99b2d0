// SPDX-License-Identifier: Apache-2.0
// Seconds as a function of bytes, by measured points.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace baton {

/// Seconds as a function of bytes, given by measured points. It is linear between points, goes on
/// with the slope of the first and last segment outside, and is never below 0.
struct Curve {
  struct Point {
    double bytes = 0;
    double seconds = 0;
  };
  /// At least two points, or none. Bytes ascend; seconds never descend, and ascend at the end.
  std::vector<Point> points;

  bool empty() const { return points.empty(); }
  double seconds(double bytes) const;
};

inline double Curve::seconds(double bytes) const {
  // The segment that holds `bytes`, or the first or last one outside of all.
  const auto above = std::upper_bound(points.begin() + 1, points.end() - 1, bytes,
                                      [](double b, const Point& point) { return b < point.bytes; });
  const Point &end = *above, &start = *std::prev(above);
  const double slope = (end.seconds - start.seconds) / (end.bytes - start.bytes);
  return std::max(0.0, start.seconds + (bytes - start.bytes) * slope);
}

}  // namespace baton
