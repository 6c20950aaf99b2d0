// SPDX-License-Identifier: Apache-2.0
// How instructions and compute steps share two streams.
#pragma once

#include <vector>

#include "collectives/executors/peer/compiler/program.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Takes the compute steps out of `instructions` and returns what is launched in which order: each compute step, and the
/// longest runs of instructions that can be launched as one. A run waits for the compute steps recorded before it, and
/// ends where the next instruction waits for a compute step that the run does not, and where a compute step waits for it:
/// what comes later may need that step's result on another rank.
std::vector<PeerOperation> plan_peer_operations(const Schedule& schedule,
                                                std::vector<PeerInstruction>& instructions);

/// Makes the work recorded behind exchange operation `exchange` wait for its end.
void hold_back_work(PeerProgram& program, int exchange);

}  // namespace baton
