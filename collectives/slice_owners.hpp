// SPDX-License-Identifier: Apache-2.0
// Ranks that own slices of the state and fold them for one another: the text that two_shot and hierarchical_scan share.
//
// A slice of a map is two messages, decay and state. The first rank's map is a state, and nobody needs the last one's.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/collective.hpp"

namespace baton {

/// Neighbouring ranks, and the slices that they own: as many for each as the numbers allow.
struct SliceOwners {
  int begin = 0;
  int size = 1;
  /// Into how many slices the state is cut; not fewer than `size`.
  int slices = 1;

  int end() const { return begin + size; }
  int owner(int slice) const { return begin + slice * size / slices; }
  /// The first slice that `rank` owns; of the rank after the last, the number of slices.
  int first_slice(int rank) const { return ((rank - begin) * slices + size - 1) / size; }

  /// Of [heads*d_k] rows those that `rank` owns.
  std::int64_t owned_rows(const Shape& shape, int rank) const;
  /// Elements that `rank` of `ranks` sends: its slices to their owners, and prefixes as owner.
  std::int64_t sent_elements(const Shape& shape, int rank, int ranks) const;
};

/// Sends every slice of the own map to its owner.
void send_slices(Schedule& s, const Map& own, const SliceOwners& owners);

/// As owner of `slice`: its maps, by member. The last rank's is left out.
std::vector<Map> receive_maps(Schedule& s, const Map& own, const SliceOwners& owners, int slice);

/// As owner of `slice`: gives every member its prefix, the fold of `prefix` and the maps of the members before it.
/// `prefix` is what the ranks before the members make; the first members have none. Returns what they all make, if they
/// are the first and not the only ones.
Map hand_out(Schedule& s, const Operands& x, const SliceOwners& owners, int slice,
             const std::vector<Map>& maps, Map prefix);

/// Receives the prefix's slices from their owners.
void receive_prefix(Schedule& s, const Operands& x, const SliceOwners& owners);

}  // namespace baton
