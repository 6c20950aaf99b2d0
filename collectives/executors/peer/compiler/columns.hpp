// SPDX-License-Identifier: Apache-2.0
// Which thread touches which element: what instructions read and write in memory, and the columns that follow.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/executors/peer/compiler/program.hpp"

namespace baton {

/// One slice that an instruction touches in memory.
struct PeerAccess {
  Slice slice;
  bool writes = false;
  /// Every thread may read any element of it, as with decays; otherwise element i belongs to packet i / E.
  bool shared = false;
};

std::vector<PeerAccess> peer_accesses(const PeerInstruction& instruction);

/// How two instructions, of which one writes what the other touches, must lie to one another.
struct PeerRelation {
  /// False where no choice of columns gives every such element to one thread in both.
  bool aligns = true;
  /// Where they conflict: the column of the second less that of the first.
  std::optional<std::int64_t> distance;
};

PeerRelation relate(const PeerInstruction& first, const PeerInstruction& second, int packet_elements);

/// Chooses every instruction's column and sets barriers where that does not suffice. The start of an operation is a
/// barrier already.
void assign_columns(std::vector<PeerInstruction>& instructions, const std::vector<PeerOperation>& operations,
                    int packet_elements);

}  // namespace baton
