// SPDX-License-Identifier: Apache-2.0
// From schedules to peer programs: order the steps, lower them to micro-operations, fuse these into
// instructions, merge blocks, plan launches, assign columns. Host code; every rank computes the
// programs of all ranks.
#pragma once

#include <span>
#include <vector>

#include "collectives/executors/peer/compiler/ir.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Refuses schedules that no program can be made of. A format that rounds f32 takes no bf16
/// tensors.
Refusal unsupported_by_peer(std::span<const Schedule> schedules, bool rounds = false);

/// The programs of all ranks, by rank, from their checked schedules. They agree where messages lie,
/// which exchanges overlap compute steps, and run without deadlock although every thread waits for
/// what it receives.
std::vector<PeerProgram> compile_peer_programs(std::span<const Schedule> schedules,
                                               const PeerProgramOptions& options = {});

/// Takes the compute steps out of `instructions`. Returns the operations in the order of launches:
/// each compute step, and the longest runs of instructions that can be launched as one. A run waits
/// for the compute steps recorded before it. It ends where the next instruction waits for a compute
/// step that the run does not wait for, and where a compute step waits for the run, since later
/// instructions may need that step's result on another rank.
std::vector<LaunchOperation> plan_peer_operations(const Schedule& schedule,
                                                  std::vector<PeerInstruction>& instructions);

/// Lets an exchange overlap compute steps only if it does so on all ranks: an exchange is as slow
/// as its smallest kernel, so with one rank that has nothing to overlap, the others get all
/// multiprocessors too, and their later work waits. Where ranks have unlike numbers of exchange
/// operations, each keeps its own choice.
void agree_on_overlap(std::vector<PeerProgram>& programs);

/// Makes the compute steps recorded behind exchange operation `exchange` wait for its end.
void serialize_compute_after(PeerProgram& program, int exchange);

}  // namespace baton
