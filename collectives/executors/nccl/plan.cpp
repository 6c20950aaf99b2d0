// SPDX-License-Identifier: Apache-2.0
// Order, streams and events.
#include "collectives/executors/nccl/plan.hpp"

#include <algorithm>
#include <array>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {
namespace {

/// For each step the last group that it, or a step it waits for through any chain, is in; -1 for none.
std::vector<int> latest_groups(const Schedule& schedule, const std::vector<int>& groups) {
  const auto& steps = schedule.steps();
  std::vector<int> latest = groups;
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (int before : steps[i].waits_for) latest[i] = std::max(latest[i], latest[before]);
  return latest;
}

/// The operations in order, without their waits.
std::vector<NcclOperation> in_order(const Schedule& schedule, const std::vector<int>& groups) {
  const auto& steps = schedule.steps();
  const auto latest = latest_groups(schedule, groups);
  const int count = groups.empty() ? 0 : 1 + *std::max_element(groups.begin(), groups.end());
  std::vector<std::vector<int>> messages(count), locals(count + 1);
  for (int i = 0; i < static_cast<int>(steps.size()); ++i)
    (groups[i] >= 0 ? messages[groups[i]] : locals[latest[i] + 1]).push_back(i);
  std::vector<NcclOperation> all;
  for (int group = -1; group < count; ++group) {
    if (group >= 0) all.push_back({.is_group = true, .steps = messages[group]});
    for (int step : locals[group + 1])
      all.push_back({.computes = steps[step].verb == Verb::compute, .steps = {step}});
  }
  return all;
}

}  // namespace

std::vector<std::vector<int>> nccl_groups(std::span<const Schedule> schedules) {
  std::vector<std::vector<int>> groups, parts;
  for (const Schedule& schedule : schedules) {
    groups.push_back(message_groups(schedule));
    parts.push_back(parts_of(schedule, groups.back()));
  }
  return progresses_in_groups(schedules, parts) ? groups : message_rounds(schedules);
}

std::vector<NcclOperation> nccl_plan(const Schedule& schedule, const std::vector<int>& groups) {
  auto plan = in_order(schedule, groups);
  std::vector<int> operation_of(schedule.steps().size());
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (int step : plan[i].steps) operation_of[step] = static_cast<int>(i);
  // For each stream the last operation of the other one that it has waited for.
  std::array<int, 2> waited_for{-1, -1};
  for (NcclOperation& operation : plan) {
    int last = -1;
    for (int step : operation.steps)
      for (int before : schedule.steps()[step].waits_for)
        if (plan[operation_of[before]].computes != operation.computes)
          last = std::max(last, operation_of[before]);
    if (last <= waited_for[operation.computes]) continue;
    waited_for[operation.computes] = operation.waits_for = last;
  }
  return plan;
}

}  // namespace baton
