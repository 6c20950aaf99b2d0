// SPDX-License-Identifier: Apache-2.0
// Every registered collective and method, those of tomorrow included, runs in virtual time: on one
// node, on two levels and in groups, with the bytes and hops that its proof counts.
#include <gtest/gtest.h>

#include "sp_methods/sp_method.hpp"
#include "tests/collectives/simulator/proof_check.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;

/// The same, and each hop takes a latency. That is so of the registered algorithms alone: a rank
/// that overwrites what it has sent goes on once the send is over, before the message is there.
void expect_simulates_in_time(const std::vector<Schedule>& schedules, const Topology& topology) {
  const Simulation simulation = expect_simulates(schedules, topology);
  EXPECT_GE(simulation.seconds,
            topology.round_seconds + simulation.hops * topology.intra_node.latency_seconds);
}

Topology grouping_machine(int ranks) {
  Topology topology =
      uniform_machine(ranks, {.latency_seconds = 1e-6, .overhead_seconds = 5e-6, .bytes_per_second = 1e9});
  topology.groups = true;
  return topology;
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
      expect_simulates_in_time(schedules, two_levels(on_a_node, (ranks + on_a_node - 1) / on_a_node));
      expect_simulates_in_time(schedules, grouping_machine(ranks));
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
        const auto schedules = build_all(*method, layer, ranks, 3);
        expect_simulates_in_time(schedules, two_levels(3, (ranks + 2) / 3));
        expect_simulates_in_time(schedules, grouping_machine(ranks));
      }
}

INSTANTIATE_TEST_SUITE_P(Simulator, EveryRankCount, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16));

}  // namespace
