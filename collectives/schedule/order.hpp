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
