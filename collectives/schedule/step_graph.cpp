// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/step_graph.hpp"

#include <algorithm>
#include <numeric>

namespace baton {

/// Calls `for_each_edge` twice with a function of (before, after): to count the edges, then to
/// place them.
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

Graph::Sorted Graph::sort(const std::vector<int>& weights) const {
  const StepGraph graph(nodes_, edges_);
  std::vector<int> blockers = graph.blockers();
  Sorted sorted;
  sorted.order.reserve(nodes_);
  sorted.depth.assign(nodes_, 0);
  for (int node = 0; node < nodes_; ++node)
    if (blockers[node] == 0) sorted.order.push_back(node);
  for (std::size_t i = 0; i < sorted.order.size(); ++i) {
    const int node = sorted.order[i];
    sorted.depth[node] += weights[node];
    for (int after : graph.waiters(node)) {
      sorted.depth[after] = std::max(sorted.depth[after], sorted.depth[node]);
      if (--blockers[after] == 0) sorted.order.push_back(after);
    }
  }
  if (sorted.order.size() < static_cast<std::size_t>(nodes_)) sorted.cycle = find_cycle(blockers);
  return sorted;
}

std::vector<int> Graph::find_cycle(const std::vector<int>& blockers) const {
  // A node that is still blocked waits for another blocked node, so following those edges ends in a
  // cycle.
  std::vector<int> waits_for(nodes_, -1);
  for (const auto& [before, after] : edges_)
    if (blockers[before] > 0 && blockers[after] > 0) waits_for[after] = before;
  const auto blocked = std::find_if(blockers.begin(), blockers.end(), [](int count) { return count > 0; });
  std::vector<int> visit(nodes_, -1);
  std::vector<int> path;
  for (int node = static_cast<int>(blocked - blockers.begin()); visit[node] < 0; node = waits_for[node]) {
    visit[node] = static_cast<int>(path.size());
    path.push_back(node);
    if (visit[waits_for[node]] >= 0) {
      path.erase(path.begin(), path.begin() + visit[waits_for[node]]);
      break;
    }
  }
  return path;
}

}  // namespace baton
