// SPDX-License-Identifier: Apache-2.0
// Simulated machines: those that are simple enough for a closed form, and one that has every part
// of a machine.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/simulator/simulate.hpp"

namespace baton {

/// A device whose local steps take no time.
inline DeviceRates free_steps() {
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  const Rate free{.flops_per_second = unbounded, .bytes_per_second = unbounded};
  return {.kernel = free, .copy = free, .combine = free, .kernels = {}};
}

/// Nodes of equal ranks. Messages take `link` wherever they go, and local steps no time.
inline Topology uniform_machine(int ranks_per_node, const LinkModel& link, int nodes = 1) {
  Topology topology;
  topology.name = "uniform";
  topology.nodes = nodes;
  topology.ranks_per_node = ranks_per_node;
  topology.intra_node = topology.inter_node = link;
  topology.device = free_steps();
  return topology;
}

/// Nodes with a memory that an engine moves, rails, a spine and a card that all ranks of a node
/// share.
inline Topology two_levels(int ranks_per_node, int nodes) {
  const LinkModel memory{.latency_seconds = 1e-6,
                         .overhead_seconds = 1e-7,
                         .bytes_per_second = 1e10,
                         .moved_by = Transport::engine,
                         .node_bytes_per_second = 2e10};
  Topology topology = uniform_machine(ranks_per_node, memory, nodes);
  topology.name = "two levels";
  topology.round_seconds = 1e-6;
  topology.inter_node = {.latency_seconds = 5e-6, .bytes_per_second = 1e9, .node_bytes_per_second = 2e9};
  topology.spine = topology.inter_node;
  topology.spine->latency_seconds = 7e-6;
  const Rate rate{.launch_seconds = 1e-7, .flops_per_second = 1e9, .bytes_per_second = 1e9};
  topology.device = {.kernel = rate, .copy = rate, .combine = rate, .kernels = {}};
  return topology;
}

/// What `text` records on every rank.
template <typename Text>
std::vector<Schedule> record(int ranks, const Text& text) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) text(schedules.emplace_back(rank, ranks));
  return schedules;
}

/// Schedules that are there already, one a rank.
inline ScheduleSource source_of(std::vector<Schedule> schedules) {
  const int ranks = static_cast<int>(schedules.size());
  return {"test", ranks, [schedules = std::move(schedules)](int rank) { return schedules[rank]; }};
}

/// A registered collective's.
inline ScheduleSource source_of(const Collective& collective, const Shape& shape, const Split& split) {
  return {collective.name, split.ranks,
          [&collective, shape, split](int rank) { return build(collective, shape, rank, split); }};
}

}  // namespace baton
