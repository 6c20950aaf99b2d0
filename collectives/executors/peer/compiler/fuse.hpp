// SPDX-License-Identifier: Apache-2.0
// Micro-operations become instructions.
#pragma once

#include <vector>

#include "collectives/executors/peer/compiler/order.hpp"

namespace baton {

/// Fuses each micro-operation with later ones that use the value it brings into a register. Drops
/// stores to scratch that is never read, and receives of messages that are only read in the inbox.
std::vector<PeerInstruction> fuse_peer_steps(const Schedule& schedule, const PeerMicroOps& ops);

}  // namespace baton
