// SPDX-License-Identifier: Apache-2.0
// One order for the steps of all ranks, in which each can run when its turn comes.
#pragma once

#include <span>
#include <vector>

#include "collectives/schedule/graph.hpp"
#include "collectives/schedule/matching.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The node of a step in a graph of all ranks' steps: its number, but a receive shares the node of its send,
/// since both happen together.
int node_of(const Matching& matching, int number, const Step& step);

/// Adds to `graph` that every step waits for those it depends on.
void add_dependencies(Graph& graph, const Matching& matching, std::span<const Schedule> schedules);

/// For each rank the rounds of its messages, numbered through, -1 for a step that is no message. Both ends of a message
/// are in one round of all ranks, later than the rounds of all it waits for and than that of the message that went the
/// same way before it: ranks that run round after round never wait for a later one. Empty where messages would have to
/// overtake one another. For checked schedules.
std::vector<std::vector<int>> message_rounds(std::span<const Schedule> schedules);

/// One step's place in the order.
struct Turn {
  int rank = 0;
  int step = 0;
  /// Where a send's message goes: the slice of its receive, on the other rank.
  Slice into;
};

/// The steps of checked schedules, receives left out: each happens with its send. Throws ScheduleError on a
/// deadlock.
std::vector<Turn> run_order(std::span<const Schedule> schedules);

}  // namespace baton
