// SPDX-License-Identifier: Apache-2.0
// Every registered collective and method, those of tomorrow included, runs in virtual time: on one
// node and on two levels, with the bytes and hops that its proof counts.
#include <gtest/gtest.h>

#include <set>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;

/// Nodes with a memory that an engine moves, rails, a spine and a card that all ranks of a node
/// share.
Topology two_levels(int ranks_per_node, int nodes) {
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

void expect_simulates(const std::vector<Schedule>& schedules, const Topology& topology) {
  const Counts counts = check("test", schedules);
  const Simulation simulation = simulate(source_of(schedules), topology, true);
  EXPECT_EQ(simulation.busiest_sent_bytes, counts.busiest_sent_bytes());
  EXPECT_EQ(simulation.hops, counts.hops);
  std::int64_t steps = 0, messages = 0;
  std::set<std::int64_t> sizes;
  for (const Traffic& rank : counts.ranks) messages += rank.messages;
  for (const Schedule& schedule : schedules) {
    steps += static_cast<std::int64_t>(schedule.steps().size());
    for (const Step& step : schedule.steps())
      if (step.verb == Verb::send) sizes.insert(step.reads[0].bytes());
  }
  EXPECT_EQ(simulation.steps, steps);
  EXPECT_EQ(2 * simulation.messages, messages);
  EXPECT_EQ(simulation.least_message_bytes, sizes.empty() ? 0 : *sizes.begin());
  EXPECT_EQ(simulation.most_message_bytes, sizes.empty() ? 0 : *sizes.rbegin());
  EXPECT_GE(simulation.seconds, topology.round_seconds + counts.hops * topology.intra_node.latency_seconds);
  expect_possible(schedules, simulation.timeline);
}

/// Nodes of 1 to 3 ranks, the last one partly filled, and all on one.
std::vector<Split> splits(int ranks) {
  std::vector<Split> splits;
  for (int ranks_per_node : {0, 1, 2, 3})
    for (int blocks : {1, 5})
      for (Direction direction : {Direction::forward, Direction::reverse})
        splits.push_back(
            {.ranks = ranks, .blocks = blocks, .ranks_per_node = ranks_per_node, .direction = direction});
  return splits;
}

class EveryRankCount : public testing::TestWithParam<int> {};

TEST_P(EveryRankCount, SimulatesEveryCollective) {
  const int ranks = GetParam();
  for (const Collective* collective : collectives())
    for (const Split& split : splits(ranks)) {
      if (split.direction == Direction::reverse && collective->kind != Kind::exclusive_scan) continue;
      const auto schedules = build_all(*collective, {.heads = 2, .d_k = 5, .d_v = 3, .tokens = 4}, split);
      if (!schedules[0].natives().empty()) continue;
      SCOPED_TRACE(collective->name + ", " + std::to_string(split.ranks_per_node) + " ranks a node, " +
                   std::to_string(split.blocks) + " blocks, " + to_string(split.direction));
      const int on_a_node = split.ranks_per_node == 0 ? ranks : split.ranks_per_node;
      expect_simulates(schedules, two_levels(on_a_node, (ranks + on_a_node - 1) / on_a_node));
    }
}

TEST_P(EveryRankCount, SimulatesEveryMethod) {
  const int ranks = GetParam();
  for (const SpMethod* method : sp_methods())
    for (Pass pass : {Pass::forward, Pass::backward, Pass::both})
      for (Mode mode : {Mode::overlapped, Mode::exposed, Mode::compute_only}) {
        const Layer layer{
            .share = {24, 2, 8, 12, 8, GateKind::vector}, .pass = pass, .mode = mode, .blocks = 3};
        if (method->unsupported && method->unsupported(layer, ranks)) continue;
        SCOPED_TRACE(method->name + ", " + to_string(pass) + ", " + to_string(mode));
        expect_simulates(build_all(*method, layer, ranks, 3), two_levels(3, (ranks + 2) / 3));
      }
}

INSTANTIATE_TEST_SUITE_P(Simulator, EveryRankCount, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16));

}  // namespace
