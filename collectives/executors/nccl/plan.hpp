// SPDX-License-Identifier: Apache-2.0
// The part of the `nccl` executor that needs no GPU: how messages are grouped, and in which order a
// rank's host enqueues its operations.
//
//   enqueue the local steps that wait for no message
//   for each group of messages: enqueue it, then the local steps that wait for it and no later one
#pragma once

#include <span>
#include <vector>

#include "collectives/executors/cuda/launch_plan.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The operations of `schedule`, whose messages are cut into `groups`, in the order of enqueuing:
/// groups and local steps.
std::vector<LaunchOperation> nccl_plan(const Schedule& schedule, const std::vector<int>& groups);

/// The groups of each rank of checked schedules. NCCL starts the first messages to and from all
/// peers together, and the second ones of a group when these have ended. Groups are those of
/// orders.hpp where that order runs, else the rounds of orders.hpp. Empty where neither runs.
std::vector<std::vector<int>> nccl_groups(std::span<const Schedule> schedules);

}  // namespace baton
