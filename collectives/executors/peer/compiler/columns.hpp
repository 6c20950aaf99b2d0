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
  /// True where any thread may access any element, as with decays; otherwise element i belongs to
  /// packet i / E.
  bool shared = false;
};

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction);

/// How the columns of two instructions must lie where one writes what the other accesses.
struct PeerRelation {
  /// False where no choice of columns gives every such element to the same thread in both.
  bool aligns = true;
  /// The column of the second less that of the first; empty where they do not conflict.
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
