// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/joins.hpp"

#include <algorithm>

#include "collectives/schedule/orders.hpp"

namespace baton {
namespace {

constexpr std::size_t fewest = 8;  // steps that are worth a join

/// The newest join of a kind.
struct Newest {
  const std::vector<int>* waits_for = nullptr;
  int node = -1;
};

}  // namespace

JoinedSteps join(const std::vector<Step>& steps) {
  const int count = static_cast<int>(steps.size());
  JoinedSteps joined;
  std::vector<StepGraph::Edge> edges;
  Newest newest[2];
  for (int i = 0; i < count; ++i) {
    const std::vector<int>& waits_for = steps[i].waits_for;
    const bool is_kernel = steps[i].verb == Verb::compute || steps[i].verb == Verb::native;
    if (waits_for.size() < fewest) {
      for (int before : waits_for) edges.emplace_back(before, i);
      continue;
    }
    Newest& known = newest[is_kernel ? 1 : 0];
    if (known.waits_for == nullptr || *known.waits_for != waits_for) {
      known = {&waits_for, count + static_cast<int>(joined.kernels_wait.size())};
      joined.kernels_wait.push_back(is_kernel);
      for (int before : waits_for) edges.emplace_back(before, known.node);
    }
    edges.emplace_back(known.node, i);
  }
  joined.graph = StepGraph(count + static_cast<int>(joined.kernels_wait.size()), edges);
  return joined;
}

JoinedSteps join_groups(const Schedule& schedule, const Topology& topology) {
  const std::vector<Step>& steps = schedule.steps();
  const std::vector<int> groups = message_groups(schedule);
  const int count = static_cast<int>(steps.size()), joins = 2 * (1 + *std::ranges::max_element(groups));
  const auto start = [count](int group) { return count + 2 * group; };
  JoinedSteps joined{{}, std::vector<bool>(joins, false), std::vector<double>(joins, 0)};
  std::vector<StepGraph::Edge> edges;
  for (int i = 0; i < count; ++i) {
    const int group = groups[i];
    for (int before : steps[i].waits_for) {
      edges.emplace_back(before, i);
      edges.emplace_back(groups[before] < 0 ? before : start(groups[before]) + 1,
                         group < 0 ? i : start(group));
    }
    if (group < 0) continue;
    edges.emplace_back(start(group), i);
    if (steps[i].verb == Verb::recv) edges.emplace_back(i, start(group) + 1);
    double& launch = joined.seconds[2 * group];
    launch = std::max(launch, topology.link(schedule.home_rank(), steps[i].peer).busy_seconds(0));
  }
  for (int join = 2; join < joins; join += 2) edges.emplace_back(count + join - 1, count + join);
  joined.graph = StepGraph(count + joins, edges);
  return joined;
}

}  // namespace baton
