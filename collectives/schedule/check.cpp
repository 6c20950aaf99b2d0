// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/check.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/orders.hpp"
#include "collectives/schedule/step_graph.hpp"

namespace baton {

namespace {

void check_coverage(const std::string& collective, const Schedule& schedule) {
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const Buffer& buffer = schedule.buffers()[b];
    if (buffer.role != Role::output || !buffer.covered) continue;
    std::vector<Slice> written;
    for (const Step& step : schedule.steps())
      for (const Slice& slice : step.writes)
        if (slice.buffer == static_cast<int>(b)) written.push_back(slice);
    std::sort(written.begin(), written.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
    std::int64_t reached = 0;
    for (const Slice& slice : written)
      if (slice.offset <= reached) reached = std::max(reached, slice.end());
    if (reached < buffer.count)
      throw ScheduleError(collective + ": rank " + std::to_string(schedule.home_rank()) + ", step " +
                          std::to_string(schedule.steps().size()) + " (end" +
                          (schedule.steps().empty() ? "" : ", after " + where(schedule.steps().back())) +
                          "): nothing wrote '" + buffer.name + "' from element " + std::to_string(reached) +
                          " on");
  }
}

/// Adds to `graph` that a group starts when the group before it, and everything that its members
/// wait for, has finished.
void add_groups(Graph& graph, const Matching& matching, std::span<const Schedule> schedules,
                const std::vector<std::vector<int>>& groups_of, int next_node) {
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
    const auto& steps = schedules[rank].steps();
    const auto& groups = groups_of[rank];
    const int first = next_node;
    for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
      if (groups[i] < 0) continue;
      const int start = first + groups[i];
      const int node = node_of(matching, matching.number(rank, i), steps[i]);
      graph.add_edge(start, node);
      graph.add_edge(node, start + 1);
      for (int before : steps[i].waits_for)
        graph.add_edge(node_of(matching, matching.number(rank, before), steps[before]), start);
      next_node = std::max(next_node, start + 2);
    }
  }
}

std::string describe_cycle(const Matching& matching, const std::vector<int>& cycle) {
  std::string text;
  for (int node : cycle) {
    if (node >= matching.steps()) continue;  // the start of a group, which no author wrote
    text += (text.empty() ? "" : " waits for ") + matching.name(node);
  }
  return text;
}

/// The cycle of waiting steps if each rank runs its groups one after the other; empty if there is
/// none.
std::string deadlock_in_groups(const Matching& matching, std::span<const Schedule> schedules,
                               const std::vector<std::vector<int>>& groups) {
  const int steps = matching.steps();
  // Each group has at least one message, and each rank has one more start than groups.
  const int nodes = 2 * steps + 2 * static_cast<int>(schedules.size());
  Graph grouped(nodes);
  add_dependencies(grouped, matching, schedules);
  add_groups(grouped, matching, schedules, groups, steps);
  return describe_cycle(matching, grouped.sort(std::vector<int>(nodes, 0)).cycle);
}

int check_progress(const Matching& matching, std::span<const Schedule> schedules) {
  const int steps = matching.steps();
  Graph free_order(steps);
  add_dependencies(free_order, matching, schedules);
  std::vector<int> weights(steps, 0);
  for (int rank = 0, n = 0; rank < static_cast<int>(schedules.size()); ++rank)
    for (const Step& step : schedules[rank].steps()) weights[n++] = step.verb == Verb::send;
  const auto sorted = free_order.sort(weights);
  if (!sorted.cycle.empty()) throw ScheduleError("deadlock: " + describe_cycle(matching, sorted.cycle));

  std::vector<std::vector<int>> groups;
  for (const Schedule& schedule : schedules) groups.push_back(message_groups(schedule));
  const std::string deadlock = deadlock_in_groups(matching, schedules, groups);
  if (!deadlock.empty()) throw ScheduleError("deadlock when messages run in groups: " + deadlock);
  return sorted.depth.empty() ? 0 : *std::max_element(sorted.depth.begin(), sorted.depth.end());
}

}  // namespace

Traffic traffic_of(const Schedule& schedule) {
  Traffic traffic;
  for (const Step& step : schedule.steps()) {
    if (step.verb == Verb::send) traffic.sent_bytes += step.reads[0].bytes();
    if (step.verb == Verb::recv) traffic.received_bytes += step.writes[0].bytes();
    traffic.messages += step.is_message();
    if (step.verb == Verb::combine) traffic.flops += step.combine_flops();
    if (step.verb == Verb::compute) traffic.flops += schedule.kernels()[step.body].flops;
  }
  return traffic;
}

std::optional<double> balance(const std::vector<double>& flops) {
  const double all = std::reduce(flops.begin(), flops.end());
  if (all == 0) return std::nullopt;
  return std::ranges::max(flops) * static_cast<double>(flops.size()) / all;
}

Footprint footprint(const Schedule& schedule) {
  Footprint sum;
  for (const Buffer& buffer : schedule.buffers())
    (buffer.role == Role::scratch ? sum.scratch : sum.tensors) += buffer.bytes();
  return sum;
}

Footprint largest_footprint(std::span<const Schedule> schedules) {
  Footprint most;
  for (const Schedule& schedule : schedules) most = larger(most, footprint(schedule));
  return most;
}

std::int64_t Counts::busiest_sent_bytes() const {
  std::int64_t most = 0;
  for (const Traffic& rank : ranks) most = std::max(most, rank.sent_bytes);
  return most;
}

Counts check(const std::string& collective, std::span<const Schedule> schedules) {
  const Matching matching(collective, schedules);
  Counts counts;
  for (const Schedule& schedule : schedules) {
    check_coverage(collective, schedule);
    counts.ranks.push_back(traffic_of(schedule));
  }
  counts.hops = check_progress(matching, schedules);
  return counts;
}

bool progresses_in_groups(std::span<const Schedule> schedules, const std::vector<std::vector<int>>& groups) {
  return deadlock_in_groups(Matching("schedules", schedules), schedules, groups).empty();
}

}  // namespace baton
