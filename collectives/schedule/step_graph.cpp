// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/step_graph.hpp"

#include <algorithm>
#include <numeric>

namespace baton {

/// Calls `for_each_edge` twice with a function of (before, after): to count the edges, then to place them.
template <class ForEachEdge>
void StepGraph::build(int nodes, const ForEachEdge& for_each_edge) {
  blockers_.assign(nodes, 0);
  first_waiter_.assign(nodes + 1, 0);
  for_each_edge([this](int before, int after) {
    ++blockers_[after];
    ++first_waiter_[before + 1];
  });
  std::partial_sum(first_waiter_.begin(), first_waiter_.end(), first_waiter_.begin());
  waiters_.resize(first_waiter_.back());
  std::vector<std::size_t> next(first_waiter_.begin(), first_waiter_.end() - 1);
  for_each_edge([&](int before, int after) { waiters_[next[before]++] = after; });
}

StepGraph::StepGraph(const std::vector<Step>& steps) {
  build(static_cast<int>(steps.size()), [&](const auto& edge) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (int before : steps[i].waits_for) edge(before, static_cast<int>(i));
  });
}

StepGraph::StepGraph(int nodes, const std::vector<Edge>& edges) {
  build(nodes, [&](const auto& edge) {
    for (const auto& [before, after] : edges) edge(before, after);
  });
}

std::vector<bool> feeding_messages(const std::vector<Step>& steps, const StepGraph& graph) {
  std::vector<bool> feeds(steps.size(), false);
  for (int i = graph.size() - 1; i >= 0; --i)
    for (int after : graph.waiters(i))
      if (steps[after].is_message() || feeds[after]) feeds[i] = true;
  return feeds;
}

int latest_awaited_group(const Step& step, const std::vector<int>& latest) {
  int group = -1;
  for (int before : step.waits_for) group = std::max(group, latest[before]);
  return group;
}

std::vector<int> latest_groups(const std::vector<Step>& steps, const std::vector<int>& groups) {
  std::vector<int> latest = groups;
  for (std::size_t i = 0; i < steps.size(); ++i)
    latest[i] = std::max(latest[i], latest_awaited_group(steps[i], latest));
  return latest;
}

}  // namespace baton
