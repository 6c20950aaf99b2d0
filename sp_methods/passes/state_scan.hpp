// SPDX-License-Identifier: Apache-2.0
// The exclusive scan that carries the states of a pass: what it costs, and what it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// What a rank's scans of states claim.
struct ClaimedScans {
  std::int64_t bytes = 0;  ///< All of them, by the home rank that sends most.
  std::vector<int> hops;   ///< Of each.
};

/// Scans of one group's maps in these directions, once each; empty if the scan claims nothing.
std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions);

/// What the embedded `scan` reads of the map of the rank that `schedule` is of, before it is
/// recorded. Ranks between the first and the last one may make what it does not read.
MapUse map_use(const Schedule& schedule, const std::string& scan, const Layer& layer, Direction direction);

}  // namespace baton
