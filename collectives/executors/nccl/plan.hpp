// SPDX-License-Identifier: Apache-2.0
// In which order a rank's host enqueues its steps, and on which of two streams: the part of the `nccl` executor that
// needs no GPU.
//
//   local steps that wait for no message; then for each group of messages (groups.hpp): the group, then the local steps
//   that wait for it and for no later one
//
// Compute steps have a stream of their own, so that an exchange goes on beside them; all else goes between ranks or is
// on its way there. An operation waits for one of the other stream by an event, where no earlier wait covers it.
#pragma once

#include <span>
#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// What is enqueued at once: one local step, or a group of messages.
struct NcclOperation {
  bool is_group = false;
  /// On the stream of compute steps.
  bool computes = false;
  std::vector<int> steps;
  /// The operation of the other stream that this one must wait for, -1 for none.
  int waits_for = -1;
};

/// The operations of `schedule`, whose messages are cut into `groups`, in the order of enqueuing.
std::vector<NcclOperation> nccl_plan(const Schedule& schedule, const std::vector<int>& groups);

/// For each rank of checked schedules, its groups. NCCL starts the first messages to and from all peers together, and
/// within a group the second ones when these have ended: groups are those of groups.hpp where that runs, else the rounds
/// of order.hpp. Empty where neither does.
std::vector<std::vector<int>> nccl_groups(std::span<const Schedule> schedules);

}  // namespace baton
