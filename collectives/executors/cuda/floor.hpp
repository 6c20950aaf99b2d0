// SPDX-License-Identifier: Apache-2.0
// Times above that of an empty round.
#pragma once

#include <limits>

namespace baton {

/// The part of a round's seconds that is above those of an empty round. Where nothing is, it is
/// unknown, and infinity stands for it: the least and the median of several leave that out.
inline double seconds_above_floor(double seconds, double floor_seconds) {
  const double above = seconds - floor_seconds;
  return above > 0 ? above : std::numeric_limits<double>::infinity();
}

}  // namespace baton
