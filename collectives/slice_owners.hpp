// SPDX-License-Identifier: Apache-2.0
// Ranks that own slices of the state and fold them for one another: the shared text of two_shot and
// hierarchical_scan.
//
// A slice of a map travels as two messages, decay and state. The first rank contributes a state,
// and no rank needs the last one's map. Slices are cut between heads where heads share a decay or a
// matrix: cut between rows of a head, every owner would need all of it.
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
  /// True if members own unlike shares, such that every rank's port carries the same
  /// (docs/decisions/0021). The members must then be all ranks, and own equally many slices.
  bool balanced = false;

  /// Balanced shares of a state of so many rows for all of `ranks`, cut into slices of about one of
  /// `blocks` blocks of the state.
  static SliceOwners of_all(std::int64_t rows, int ranks, int blocks);

  int end() const { return begin + size; }
  int owner(int slice) const { return begin + slice * size / slices; }
  /// The first slice that `rank` owns. For the rank after the last it is the number of slices.
  int first_slice(int rank) const { return ((rank - begin) * slices + size - 1) / size; }

  /// The first row of `slice` in a state of so many rows, or of so many heads if the rows of a head
  /// share a decay or a matrix. For the slice after the last it is their number.
  std::int64_t first_row(std::int64_t rows, int slice) const;
  /// The rows of `slice`, those of whole heads if heads share a decay or a matrix.
  Map part(const Map& map, int slice) const {
    const std::int64_t rows = map.form.share, shares = map.rows() / rows;
    const std::int64_t first = first_row(shares, slice);
    return map.part(first * rows, (first_row(shares, slice + 1) - first) * rows);
  }

  /// The number of decays or matrices that `rank` owns, with the part of the state of each.
  std::int64_t owned_shares(const Shape& shape, int rank) const;
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
