// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/orders.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "collectives/schedule/errors.hpp"

namespace baton {

Matching::Matching(const std::string& collective, std::span<const Schedule> schedules)
    : collective_(collective), schedules_(schedules), first_{0} {
  std::int64_t total = 0;
  for (const Schedule& schedule : schedules) {
    total += static_cast<std::int64_t>(schedule.steps().size());
    if (total > std::numeric_limits<int>::max())
      throw ScheduleError(collective + ": more than " + std::to_string(std::numeric_limits<int>::max()) +
                          " steps");
    first_.push_back(static_cast<int>(total));
  }
  partner_.assign(total, -1);
  pair_messages();
}

void Matching::pair_messages() {
  // Receives are listed by sender, keyed by receiver and sequence; then every send finds its own.
  std::vector<std::unordered_map<std::uint64_t, int>> awaited(schedules_.size());
  const auto key = [](int receiver, int sequence) {
    return static_cast<std::uint64_t>(receiver) << 32 | static_cast<std::uint32_t>(sequence);
  };
  for (int n = 0; n < steps(); ++n)
    if (step(n).verb == Verb::recv) awaited[step(n).peer].emplace(key(rank(n), step(n).sequence), n);
  for (int n = 0; n < steps(); ++n) {
    if (step(n).verb != Verb::send) continue;
    const auto found = awaited[rank(n)].find(key(step(n).peer, step(n).sequence));
    if (found == awaited[rank(n)].end())
      throw ScheduleError(name(n) + " has no receive on rank " + std::to_string(step(n).peer));
    const auto sent = step(n).reads[0].count, received = step(found->second).writes[0].count;
    if (sent != received)
      throw ScheduleError(name(n) + " sends " + std::to_string(sent) + " elements, but " +
                          name(found->second) + " receives " + std::to_string(received));
    if (step(n).reads[0].dtype != step(found->second).writes[0].dtype)
      throw ScheduleError(name(n) + " sends elements of another type than " + name(found->second) +
                          " receives");
    partner_[n] = found->second;
    partner_[found->second] = n;
  }
  for (int n = 0; n < steps(); ++n)
    if (step(n).verb == Verb::recv && partner_[n] < 0)
      throw ScheduleError(name(n) + " has no send on rank " + std::to_string(step(n).peer));
}

int Matching::rank(int number) const {
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), number) - first_.begin()) - 1;
}

const Step& Matching::step(int number) const {
  const int owner = rank(number);
  return schedules_[owner].steps()[number - first_[owner]];
}

std::string Matching::name(int number) const {
  const int owner = rank(number);
  return collective_ + ": rank " + std::to_string(owner) + ", " +
         step_name(step(number), number - first_[owner]);
}

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

namespace {

/// For each step of all ranks, the index on its rank of the last kernel that the step waits for, or
/// is; -1 for none.
std::vector<int> last_kernels(std::span<const Schedule> schedules) {
  std::vector<int> of_all;
  for (const Schedule& schedule : schedules) {
    std::vector<int> kernels;
    for (const Step& step : schedule.steps())
      kernels.push_back(step.verb == Verb::compute ? static_cast<int>(kernels.size())
                                                   : latest_awaited_group(step, kernels));
    of_all.insert(of_all.end(), kernels.begin(), kernels.end());
  }
  return of_all;
}

}  // namespace

std::vector<std::vector<int>> ready_groups(std::span<const Schedule> schedules) {
  const Matching matching("schedules", schedules);
  const auto kernels = last_kernels(schedules);
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    const auto& steps = schedules[rank].steps();
    std::vector<int> groups = message_groups(schedules[rank]);
    std::map<int, int> awaited;  // the last kernel that each sender of the open group waits for
    int cuts = 0, before = -1;   // before: the message before this one
    for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
      if (groups[i] < 0) continue;
      const int send = node_of(matching, matching.number(rank, i), steps[i]), sender = matching.rank(send);
      const bool same_group = before >= 0 && groups[i] + cuts == groups[before];
      const bool ready = awaited.contains(sender) && awaited[sender] == kernels[send];
      if (!same_group || (steps[i].region != steps[before].region && !ready)) awaited.clear();
      cuts += same_group && awaited.empty();
      groups[i] += cuts;
      awaited[sender] = kernels[send];
      before = i;
    }
    all.push_back(std::move(groups));
  }
  return all;
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

/// Adds to `graph` that messages from `rank` to one peer happen one after the other.
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

/// Ranks the values from 0 on without gaps; negative ones become -1.
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
