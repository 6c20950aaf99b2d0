// SPDX-License-Identifier: Apache-2.0
// The exclusive scan that carries the states of a pass: what it costs, what it reads, and what it
// refuses. The serial chain of whole passes, which needs no scan beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// Claimed cost of a rank's scans of states.
struct ClaimedScans {
  std::vector<std::int64_t> sent;  ///< Bytes of all scans, by home rank.
  std::vector<int> hops;           ///< Hops of each scan.
};

/// Claimed cost of a scan of one group's maps in each of `directions`; empty if the scan claims
/// nothing.
std::optional<ClaimedScans> claimed_scans(const std::string& scan, const Shape& shape, Split split,
                                          const std::vector<Direction>& directions);

/// Bytes of the rank that sends most, of `times` such scans and what each rank sends `beside` them.
std::int64_t busiest(const ClaimedScans& scans, int times, const std::vector<std::int64_t>& beside);

/// The parts of the map of the rank of `schedule` that `scan` reads once it is embedded. A rank
/// between the first and the last one counts both parts.
MapUse map_use(const Schedule& schedule, const std::string& scan, const Layer& layer, Direction direction);

/// True if a rank's map in a pass of this direction acts on a state that enters or leaves the whole
/// sequence. On several ranks both passes have one where either has.
bool maps_states(const Layer& layer, Direction direction, int rank, int ranks);

/// The reason why `scan`, or the kernels around it, cannot take the maps of this layer; empty if
/// they can. Natives take decays alone.
Refusal unsupported_maps(const Layer& layer, const std::string& scan);

/// The scan whose states, sent rank by rank, are those of a serial chain.
inline constexpr const char* serial_scan = "ring_scan";

/// Records a link of a serial chain: receives the states of all groups, does all work of the pass,
/// and sends the states behind it.
void record_link(Schedule& schedule, LinearPass& pass);

/// The group's state behind the tokens of a pass, once the state before them is there.
Map state_behind(Schedule& schedule, const LinearPass& pass, int group);

}  // namespace baton
