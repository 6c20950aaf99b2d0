// SPDX-License-Identifier: Apache-2.0
// What hierarchical_scan is for: few bytes between nodes, and those on rails. every_collective_test
// shows it right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/listing.hpp"

namespace {

using namespace baton;

constexpr Shape shape{.heads = 2, .d_k = 12, .d_v = 4};

/// Bytes sent between nodes, by sender and receiver.
std::map<std::pair<int, int>, std::int64_t> sent_across(const char* name, const Split& split) {
  std::map<std::pair<int, int>, std::int64_t> sent;
  for (const Schedule& schedule : build_all(find_collective(name), shape, split))
    for (const Step& step : schedule.steps())
      if (step.verb == Verb::send &&
          step.peer / split.ranks_per_node != schedule.home_rank() / split.ranks_per_node)
        sent[{schedule.home_rank(), step.peer}] += step.reads[0].bytes();
  return sent;
}

TEST(HierarchicalScan, OnOneNodeItIsTwoShotInBlocks) {
  for (const char* name : {"hierarchical_scan", "hierarchical_scan_chain"})
    for (Direction direction : {Direction::forward, Direction::reverse})
      for (int rank = 0; rank < 5; ++rank) {
        const Split split{.ranks = 5, .blocks = 4, .direction = direction};
        EXPECT_EQ(text(build(find_collective(name), shape, rank, split)),
                  text(build(find_collective("two_shot"), shape, rank, split)));
      }
}

TEST(HierarchicalScan, OnOneNodeWithoutBlocksTheSlicesAreEqual) {
  const std::int64_t decays = shape.heads * shape.d_k * 4 / 3, states = shape.state_bytes() / 3;
  std::set<std::int64_t> sent;
  for (const Schedule& schedule : build_all(find_collective("hierarchical_scan"), shape, {.ranks = 3}))
    for (const Step& step : schedule.steps())
      if (step.verb == Verb::send) sent.insert(step.reads[0].bytes());
  EXPECT_EQ(sent, (std::set<std::int64_t>{decays, states}));
}

TEST(HierarchicalScan, NodesTalkOnRails) {
  for (const char* name : {"hierarchical_scan", "hierarchical_scan_chain"})
    for (Direction direction : {Direction::forward, Direction::reverse})
      for (const auto& [ends, bytes] :
           sent_across(name, {.ranks = 12, .ranks_per_node = 3, .direction = direction}))
        EXPECT_EQ(ends.first % 3, ends.second % 3) << name;
}

TEST(HierarchicalScan, ChainSendsAShareOfTheStateFromEveryOwnerToTheNextNode) {
  for (int blocks : {1, 6}) {
    const auto sent =
        sent_across("hierarchical_scan_chain", {.ranks = 12, .blocks = blocks, .ranks_per_node = 3});
    EXPECT_EQ(sent.size(), 9u);  // three rails of three hops
    for (const auto& [ends, bytes] : sent) {
      EXPECT_EQ(ends.second, ends.first + 3);
      EXPECT_EQ(bytes, shape.state_bytes() / 3);
    }
  }
}

TEST(HierarchicalScan, ChainCutsTheWholeStateIntoItsBlocks) {
  const auto messages_of_the_first = [](int blocks) {
    const Split split{.ranks = 6, .blocks = blocks, .ranks_per_node = 3};
    const auto schedule = build(find_collective("hierarchical_scan_chain"), shape, 0, split);
    return std::count_if(schedule.steps().begin(), schedule.steps().end(),
                         [](const Step& step) { return step.verb == Verb::send && step.peer == 3; });
  };
  EXPECT_EQ(messages_of_the_first(1), 1);
  EXPECT_EQ(messages_of_the_first(6), 2);
  EXPECT_EQ(messages_of_the_first(7), 3);
}

TEST(HierarchicalScan, DoublingNeedsTheLogarithmOfTheNodes) {
  const auto hops = [](int ranks) {
    return check("hierarchical_scan", build_all(find_collective("hierarchical_scan"), shape,
                                                {.ranks = ranks, .ranks_per_node = 4}))
        .hops;
  };
  EXPECT_EQ(hops(8), 1 + 2);
  EXPECT_EQ(hops(32), 3 + 2);
  EXPECT_EQ(hops(29), 3 + 1);  // nobody to hand out to on the last node
}

TEST(HierarchicalScan, AFewRanksOnTheLastNodeOwnAllSlices) {
  std::set<int> senders, receivers;
  for (const auto& [ends, bytes] : sent_across("hierarchical_scan", {.ranks = 7, .ranks_per_node = 5})) {
    senders.insert(ends.first);
    receivers.insert(ends.second);
  }
  EXPECT_EQ(senders.size(), 5u);
  EXPECT_EQ(receivers, (std::set{5, 6}));
}

}  // namespace
