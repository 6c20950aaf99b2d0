// SPDX-License-Identifier: Apache-2.0
// Order over the steps of all ranks.
#include "collectives/schedule/order.hpp"

#include <map>

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

namespace {

/// Messages from one rank to another happen one after the other.
void add_ways(Graph& graph, const Matching& matching, const Schedule& schedule, int rank) {
  std::map<int, int> last;  // the node of the last message to each peer
  for (int i = 0; i < static_cast<int>(schedule.steps().size()); ++i) {
    const Step& step = schedule.steps()[i];
    if (step.verb != Verb::send) continue;
    const int node = matching.number(rank, i);
    if (last.count(step.peer) > 0) graph.add_edge(last[step.peer], node);
    last[step.peer] = node;
  }
}

/// Numbers from 0 on without gaps, in the order of the values; what is negative stays -1.
std::vector<int> numbered_through(const std::vector<int>& values) {
  std::map<int, int> numbers;
  for (int value : values)
    if (value >= 0) numbers[value] = 0;
  int next = 0;
  for (auto& [value, number] : numbers) number = next++;
  std::vector<int> through;
  for (int value : values) through.push_back(value < 0 ? -1 : numbers[value]);
  return through;
}

}  // namespace

std::vector<std::vector<int>> message_rounds(std::span<const Schedule> schedules) {
  const Matching matching("schedules", schedules);
  Graph graph(matching.steps());
  add_dependencies(graph, matching, schedules);
  std::vector<int> weights(matching.steps(), 0);
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    add_ways(graph, matching, schedules[rank], rank);
    for (int i = 0; i < static_cast<int>(schedules[rank].steps().size()); ++i)
      weights[matching.number(rank, i)] = schedules[rank].steps()[i].verb == Verb::send;
  }
  const auto sorted = graph.sort(weights);
  if (!sorted.cycle.empty()) return {};
  std::vector<std::vector<int>> rounds;
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    std::vector<int> mine;
    for (int i = 0; const Step& step : schedules[rank].steps()) {
      mine.push_back(step.is_message() ? sorted.depth[node_of(matching, matching.number(rank, i), step)]
                                       : -1);
      ++i;
    }
    rounds.push_back(numbered_through(mine));
  }
  return rounds;
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
