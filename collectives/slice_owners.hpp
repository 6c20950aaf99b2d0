// SPDX-License-Identifier: Apache-2.0
// Ranks that own slices of the state and fold them for one another: the shared text of two_shot and
// hierarchical_scan.
//
// A slice of a map travels as two messages, decay and state. The first rank contributes a state,
// and no rank needs the last one's map.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/collective.hpp"

namespace baton {

/// Neighbouring ranks and the slices that they own, spread as evenly as possible.
struct SliceOwners {
  int begin = 0;
  int size = 1;
  /// The number of slices of the state, at least `size`.
  int slices = 1;

  int end() const { return begin + size; }
  int owner(int slice) const { return begin + slice * size / slices; }
  /// The first slice that `rank` owns. For the rank after the last it is the number of slices.
  int first_slice(int rank) const { return ((rank - begin) * slices + size - 1) / size; }

  /// The number of the [heads*d_k] rows that `rank` owns.
  std::int64_t owned_rows(const Shape& shape, int rank) const;
  /// Elements that `rank` of `ranks` sends: its slices to their owners, and prefixes as owner.
  std::int64_t sent_elements(const Shape& shape, int rank, int ranks) const;
};

/// Sends every slice of the own map to its owner.
void send_slices(Schedule& s, const Map& own, const SliceOwners& owners);

/// Receives, as owner of `slice`, its maps by member, without the last rank's.
std::vector<Map> receive_maps(Schedule& s, const Map& own, const SliceOwners& owners, int slice);

/// Sends, as owner of `slice`, every member its prefix: the fold of `prefix` and the maps of the
/// members before it. `prefix` is the fold of the ranks before the members; the first members have
/// none. Returns the fold of all members if they are the first and not the only ones.
Map hand_out(Schedule& s, const Operands& x, const SliceOwners& owners, int slice,
             const std::vector<Map>& maps, Map prefix);

/// Receives the prefix's slices from their owners.
void receive_prefix(Schedule& s, const Operands& x, const SliceOwners& owners);

}  // namespace baton
