// SPDX-License-Identifier: Apache-2.0
// The bytes in which a rank and its node work, and what steps take that find few of their own in a
// cache.
//
//   a calibrated step of b bytes repeats on these alone
//   in an exchange, half of the rank's bytes come between two uses of a buffer: if these are more
//   than b, its bytes take what a step of so many takes for each
//   what all ranks of a node work in evicts what does not fit: 1 - cache / bytes is not there
#pragma once

#include <algorithm>

#include "collectives/schedule/check.hpp"
#include "collectives/simulator/topology/topology.hpp"

namespace baton {

/// The bytes of a rank's buffers, and of those of all ranks of its node, which are taken as equal.
class WorkingSet {
 public:
  WorkingSet(const Footprint& footprint, int ranks, const Topology& topology)
      : cache_(topology.device.cache),
        between_uses_(static_cast<double>(footprint.total()) / 2),
        node_(static_cast<double>(footprint.total()) * std::min(ranks, topology.ranks_per_node)) {}

  /// Seconds of a step of `bytes`, where `seconds(b)` are those of one that repeats on b bytes.
  template <typename Seconds>
  double seconds(double bytes, const Seconds& seconds) const {
    if (cache_.bytes == 0) return seconds(bytes);
    const double far = std::max(0.0, 1 - cache_.bytes / node_);
    const double near = between_uses_ > bytes ? seconds(between_uses_) * bytes / between_uses_ : 0;
    return std::max(seconds(bytes), near) * (1 + far * cache_.slowdown);
  }

 private:
  const Cache& cache_;
  double between_uses_;
  double node_;
};

}  // namespace baton
