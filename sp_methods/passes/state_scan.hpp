// SPDX-License-Identifier: Apache-2.0
// The exclusive scan that carries the states of a pass: what it costs, and what it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// Claimed cost of a rank's scans of states.
struct ClaimedScans {
  std::int64_t bytes = 0;  ///< Bytes of all scans, by the home rank that sends most.
  std::vector<int> hops;   ///< Hops of each scan.
};

/// Claimed cost of a scan of one group's maps in each of `directions`; empty if the scan claims
/// nothing.
std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions);

/// The parts of the map of the rank of `schedule` that `scan` reads once it is embedded. A rank
/// between the first and the last one counts both parts.
MapUse map_use(const Schedule& schedule, const std::string& scan, const Layer& layer, Direction direction);

}  // namespace baton
