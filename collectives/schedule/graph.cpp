// SPDX-License-Identifier: Apache-2.0
// Topological order (Kahn) and the cycle that forbids one.
#include "collectives/schedule/graph.hpp"

#include <algorithm>

#include "collectives/schedule/step_graph.hpp"

namespace baton {

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
  // A node that is still blocked waits for another one that is: following those edges must come round.
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
