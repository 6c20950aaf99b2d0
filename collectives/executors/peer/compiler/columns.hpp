// SPDX-License-Identifier: Apache-2.0
// Which thread accesses which element. Blocks that an author cut are merged, since packets make the
// pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/executors/peer/compiler/ir.hpp"

namespace baton {

/// A slice that an instruction accesses in memory.
struct PeerAccess {
  Slice slice;
  bool writes = false;
  /// True if any thread may access any element, as with decays. Otherwise element i belongs to
  /// packet i / E, with E elements a packet.
  bool shared = false;
};

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction);

/// How the columns of two instructions must lie if one writes memory that the other accesses.
struct PeerRelation {
  /// False if no choice of columns gives every element that both access to one thread.
  bool aligns = true;
  /// The column of the second instruction minus that of the first; empty if they do not conflict.
  std::optional<std::int64_t> distance;
};

PeerRelation relate(const PeerInstruction& first, const PeerInstruction& second, int packet_elements);

/// Makes one instruction of neighbours that do the same over adjoining slices.
std::vector<PeerInstruction> merge_peer_instructions(std::vector<PeerInstruction> instructions,
                                                     int packet_elements);

/// Chooses the column of every instruction and sets barriers where that does not suffice. The start
/// of an operation is a barrier already.
void assign_columns(std::vector<PeerInstruction>& instructions,
                    const std::vector<LaunchOperation>& operations, int packet_elements);

}  // namespace baton
