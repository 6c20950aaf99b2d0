// SPDX-License-Identifier: Apache-2.0
// Groups of messages.
#include "collectives/schedule/groups.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "collectives/schedule/step_graph.hpp"

namespace baton {

std::vector<int> message_groups(const Schedule& schedule) {
  const auto& steps = schedule.steps();
  std::vector<int> groups(steps.size(), -1);
  std::vector<int> latest(steps.size(), -1);  // the last group that the step, or one it waits for, is in
  int open = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    latest[i] = latest_awaited_group(steps[i], latest);
    if (!steps[i].is_message()) continue;
    if (latest[i] == open) ++open;
    groups[i] = latest[i] = open;
  }
  return groups;
}

std::vector<int> parts_of(const Schedule& schedule, const std::vector<int>& groups) {
  const auto& steps = schedule.steps();
  std::map<std::tuple<int, Verb, int>, int> gone;  // messages of a group that went the same way so far
  std::vector<int> part(steps.size(), 0), parts_in;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (groups[i] < 0) continue;
    part[i] = gone[{groups[i], steps[i].verb, steps[i].peer}]++;
    if (groups[i] >= static_cast<int>(parts_in.size())) parts_in.resize(groups[i] + 1, 0);
    parts_in[groups[i]] = std::max(parts_in[groups[i]], part[i] + 1);
  }
  std::vector<int> first(parts_in.size() + 1, 0);
  for (std::size_t group = 0; group < parts_in.size(); ++group)
    first[group + 1] = first[group] + parts_in[group];
  std::vector<int> numbered(steps.size(), -1);
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (groups[i] >= 0) numbered[i] = first[groups[i]] + part[i];
  return numbered;
}

}  // namespace baton
