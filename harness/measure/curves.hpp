// SPDX-License-Identifier: Apache-2.0
// From readings of probes to the curves of a topology, which rise with the size.
//
//   pools = one for each reading
//   while the mean of a pool is below that of the one before:  pool the two
//   curve = for each reading the mean of its pool
//
// Means are geometric: a disturbance can make a reading a hundred times too long. Source: isotonic
// regression by pooling adjacent violators, Ayer et al., 1955.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// Adds a point to a curve whose seconds must rise with the size, at no more than the greatest rate
/// that a topology may have. A time that noise made too short becomes the one before it plus 1 ps.
inline void add_point(Curve& curve, double bytes, double seconds) {
  constexpr double least_step = 1e-12, free = 1e17;  // seconds, bytes a second
  if (!curve.points.empty())
    seconds = std::max({seconds, curve.points.back().seconds + least_step, bytes / free});
  curve.points.push_back({bytes, seconds});
}

/// The rising curve through `found`, whose bytes ascend. A wrong reading moves the points next to
/// it, not all that follow. Points without a time are left out, unless fewer than two have one:
/// then what takes no time is almost free. Throws SystemError if those times are unknown.
inline Curve rising(const std::vector<Curve::Point>& found) {
  struct Pool {
    double logarithms;
    int count;
    double mean() const { return logarithms / count; }
  };
  std::vector<Curve::Point> read;
  std::copy_if(found.begin(), found.end(), std::back_inserter(read), [](auto& p) { return p.seconds > 0; });
  if (read.size() < 2) {  // a curve needs two points
    if (std::any_of(found.begin(), found.end(), [](auto& p) { return std::isnan(p.seconds); }))
      throw SystemError(
          "the machine cannot be calibrated: its rounds vary by more than what is measured takes; "
          "end what else runs on it, and calibrate again");
    read = found;
    for (Curve::Point& point : read) point.seconds = std::max(point.seconds, 1e-12);
  }
  std::vector<Pool> pools;
  for (const Curve::Point& point : read) {
    Pool pool{std::log(point.seconds), 1};
    for (; !pools.empty() && pools.back().mean() >= pool.mean(); pools.pop_back())
      pool = {pools.back().logarithms + pool.logarithms, pools.back().count + pool.count};
    pools.push_back(pool);
  }
  Curve curve;
  for (const Pool& pool : pools)
    for (int i = 0; i < pool.count; ++i)
      add_point(curve, read[curve.points.size()].bytes, std::exp(pool.mean()));
  return curve;
}

/// Seconds that a step occupies shared memory, if all ranks at once take longer than one alone; 0
/// if they do not, or if one of the two is unknown.
inline double shared_seconds(double alone, double together, int ranks) {
  constexpr double noise = 1.1;
  return together > noise * alone ? together / ranks : 0;
}

inline bool is_shared(const Curve& curve) {
  return std::any_of(curve.points.begin(), curve.points.end(), [](auto& p) { return p.seconds > 1e-9; });
}

}  // namespace baton
