// SPDX-License-Identifier: Apache-2.0
// The part of the `nccl` executor that needs no GPU: how messages are grouped, and in which order a
// rank's host enqueues its operations.
//
//   enqueue the local steps that wait for no message
//   for each group of messages: enqueue it, then the local steps that wait for it and no later one
//
// A group that receives also waits for the compute steps that are enqueued before it and were
// recorded before its first message. Launched at once its kernel would hold multiprocessors while
// it waits for messages that the other ranks cannot send before they have run the same steps.
// Nothing hangs, since steps that are enqueued before a group wait for earlier groups alone.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "collectives/executors/cuda/launch_plan.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/orders.hpp"
#include "collectives/schedule/schedule.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

/// The operations of `schedule`, whose messages are cut into `groups`, in the order of enqueuing:
/// groups and local steps.
inline std::vector<LaunchOperation> nccl_plan(const Schedule& schedule, const std::vector<int>& groups) {
  const auto& steps = schedule.steps();
  const auto latest = latest_groups(steps, groups);
  const int count = groups.empty() ? 0 : 1 + *std::max_element(groups.begin(), groups.end());
  std::vector<std::vector<int>> messages(count), locals(count + 1);
  for (int i = 0; i < static_cast<int>(steps.size()); ++i)
    (groups[i] >= 0 ? messages[groups[i]] : locals[latest[i] + 1]).push_back(i);
  LaunchPlanner planner(schedule);
  const auto add = [&](const std::vector<int>& operation, bool computes, int before = -1) {
    planner.add(operation, computes, std::max(before, planner.awaited(operation, computes)));
  };
  const auto receives = [&](int step) { return steps[step].verb == Verb::recv; };
  for (int group = -1; group < count; ++group) {
    if (group >= 0) {
      const std::vector<int>& all = messages[group];
      const bool waits = std::any_of(all.begin(), all.end(), receives);
      add(all, false, waits ? planner.compute_before(all[0]) : -1);
    }
    for (int step : locals[group + 1]) add({step}, steps[step].verb == Verb::compute);
  }
  return planner.operations();
}

/// The groups of each rank of checked schedules. NCCL starts the first messages to and from all
/// peers together, and the second ones of a group when these have ended. Groups are the first of
/// `ready_groups`, `message_groups` and `message_rounds` that end. Empty if none does.
inline std::vector<std::vector<int>> nccl_groups(std::span<const Schedule> schedules) {
  const auto end = [&](const std::vector<std::vector<int>>& groups) {
    std::vector<std::vector<int>> parts;
    for (std::size_t rank = 0; rank < schedules.size(); ++rank)
      parts.push_back(parts_of(schedules[rank], groups[rank]));
    return progresses_in_groups(schedules, parts);
  };
  auto groups = ready_groups(schedules);
  if (end(groups)) return groups;
  groups.clear();
  for (const Schedule& schedule : schedules) groups.push_back(message_groups(schedule));
  return end(groups) ? groups : message_rounds(schedules);
}

}  // namespace baton
