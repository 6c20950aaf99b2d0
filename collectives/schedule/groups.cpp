// SPDX-License-Identifier: Apache-2.0
// Groups of messages.
#include "collectives/schedule/groups.hpp"

#include <algorithm>

namespace baton {

std::vector<int> message_groups(const Schedule& schedule) {
  const auto& steps = schedule.steps();
  std::vector<int> groups(steps.size(), -1);
  std::vector<int> latest(steps.size(), -1);  // the last group that the step, or one it waits for, is in
  int open = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (int before : steps[i].waits_for) latest[i] = std::max(latest[i], latest[before]);
    if (!steps[i].is_message()) continue;
    if (latest[i] == open) ++open;
    groups[i] = latest[i] = open;
  }
  return groups;
}

}  // namespace baton
