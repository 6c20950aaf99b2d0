// SPDX-License-Identifier: Apache-2.0
// Order over the steps of all ranks.
#include "collectives/schedule/order.hpp"

#include "collectives/schedule/errors.hpp"

namespace baton {

int node_of(const Matching& matching, int number, const Step& step) {
  return step.verb == Verb::recv ? matching.partner(number) : number;
}

void add_dependencies(Graph& graph, const Matching& matching, std::span<const Schedule> schedules) {
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    const auto& steps = schedules[rank].steps();
    for (int i = 0; i < static_cast<int>(steps.size()); ++i)
      for (int before : steps[i].waits_for)
        graph.add_edge(node_of(matching, matching.number(rank, before), steps[before]),
                       node_of(matching, matching.number(rank, i), steps[i]));
  }
}

std::vector<Turn> run_order(std::span<const Schedule> schedules) {
  const Matching matching("schedules", schedules);
  Graph graph(matching.steps());
  add_dependencies(graph, matching, schedules);
  const auto sorted = graph.sort(std::vector<int>(matching.steps(), 0));
  if (!sorted.cycle.empty()) throw ScheduleError("deadlock at " + matching.name(sorted.cycle.front()));
  std::vector<Turn> order;
  for (int number : sorted.order) {
    const Step& step = matching.step(number);
    if (step.verb == Verb::recv) continue;
    const int rank = matching.rank(number);
    const Slice into = step.verb == Verb::send ? matching.step(matching.partner(number)).writes[0] : Slice{};
    order.push_back({rank, number - matching.number(rank, 0), into});
  }
  return order;
}

}  // namespace baton
