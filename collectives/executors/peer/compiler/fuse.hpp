// SPDX-License-Identifier: Apache-2.0
// The peephole of the peer executor: from ordered steps to instructions that do several of them at once.
#pragma once

#include <span>
#include <vector>

#include "collectives/executors/peer/compiler/order.hpp"
#include "collectives/executors/peer/compiler/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Fuses the steps of `schedule` in `order`, each with those after it that use the value it brings into a register.
/// Stores to scratch that nobody reads are left out, as are receives whose message is only read where it lies.
std::vector<PeerInstruction> fuse_peer_steps(const Schedule& schedule, const std::vector<int>& order,
                                             const PeerInboxes& inboxes);

/// Makes one instruction of neighbours that do the same over adjoining slices.
std::vector<PeerInstruction> merge_peer_instructions(std::vector<PeerInstruction> instructions,
                                                     int packet_elements);

}  // namespace baton
