// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/nccl/plan.hpp"

#include <algorithm>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/orders.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

std::vector<std::vector<int>> nccl_groups(std::span<const Schedule> schedules) {
  std::vector<std::vector<int>> groups, parts;
  for (const Schedule& schedule : schedules) {
    groups.push_back(message_groups(schedule));
    parts.push_back(parts_of(schedule, groups.back()));
  }
  return progresses_in_groups(schedules, parts) ? groups : message_rounds(schedules);
}

std::vector<LaunchOperation> nccl_plan(const Schedule& schedule, const std::vector<int>& groups) {
  const auto& steps = schedule.steps();
  const auto latest = latest_groups(steps, groups);
  const int count = groups.empty() ? 0 : 1 + *std::max_element(groups.begin(), groups.end());
  std::vector<std::vector<int>> messages(count), locals(count + 1);
  for (int i = 0; i < static_cast<int>(steps.size()); ++i)
    (groups[i] >= 0 ? messages[groups[i]] : locals[latest[i] + 1]).push_back(i);
  LaunchPlanner planner(schedule);
  const auto add = [&](const std::vector<int>& operation, bool computes) {
    planner.add(operation, computes, planner.awaited(operation, computes));
  };
  for (int group = -1; group < count; ++group) {
    if (group >= 0) add(messages[group], false);
    for (int step : locals[group + 1]) add({step}, steps[step].verb == Verb::compute);
  }
  return planner.operations();
}

}  // namespace baton
