// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/schedule/orders.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::IsEmpty;

/// copy, copy of its result, send of that; a copy beside them.
Schedule chain_and_copy() {
  Schedule s(0, 2);
  const Slice a = s.scratch("a", 1), b = s.scratch("b", 1), c = s.scratch("c", 1), d = s.scratch("d", 1);
  s.copy(b, a);
  s.copy(c, b);
  s.send(1, c);
  s.copy(d, a);
  return s;
}

TEST(StepGraph, WaitersAndBlockersAreTheInverseOfWaitsFor) {
  const Schedule s = chain_and_copy();
  const StepGraph graph(s.steps());
  EXPECT_EQ(graph.size(), 4);
  EXPECT_THAT(graph.blockers(), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(graph.waiters(0), ElementsAre(1));
  EXPECT_THAT(graph.waiters(1), ElementsAre(2));
  EXPECT_THAT(graph.waiters(2), IsEmpty());
  EXPECT_THAT(graph.waiters(3), IsEmpty());
}

TEST(StepGraph, ListsWaitersInTheOrderOfRecording) {
  Schedule s(0, 2);
  const Slice a = s.scratch("a", 4), b = s.scratch("b", 4);
  s.copy(b, a);
  for (int k = 0; k < 4; ++k) s.send(1, b.block(k, 4));
  EXPECT_THAT(StepGraph(s.steps()).waiters(0), ElementsAre(1, 2, 3, 4));
}

TEST(StepGraph, TakesEdgesInAnyOrder) {
  const StepGraph graph(4, {{2, 0}, {3, 1}, {0, 1}, {2, 1}});
  EXPECT_THAT(graph.blockers(), ElementsAre(1, 3, 0, 0));
  EXPECT_THAT(graph.waiters(2), ElementsAre(0, 1));
  EXPECT_EQ(graph, StepGraph(4, {{3, 1}, {2, 0}, {2, 1}, {0, 1}})) << "only the waiters' order counts";
}

TEST(StepGraph, IsEmptyWithoutSteps) {
  EXPECT_EQ(StepGraph().size(), 0);
  EXPECT_EQ(StepGraph(std::vector<Step>{}), StepGraph());
}

TEST(StepGraph, KnowsWhichStepsFeedAMessageThroughAnyChain) {
  const Schedule s = chain_and_copy();
  EXPECT_THAT(feeding_messages(s.steps(), StepGraph(s.steps())), ElementsAre(true, true, false, false));
}

TEST(StepGraph, PassesTheLatestGroupAlongChains) {
  Schedule s(0, 2);
  const Slice a = s.scratch("a", 1), b = s.scratch("b", 1), c = s.scratch("c", 1);
  s.recv(a, 1);
  s.copy(b, a);
  s.recv(c, 1);
  s.combine({{}, b, 1}, {{}, b, 1}, {c, a, 1});
  EXPECT_THAT(latest_groups(s.steps(), {0, -1, 1, -1}), ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(latest_awaited_group(s.steps()[0], {0, 0, 1, 1}), -1);
  EXPECT_EQ(latest_awaited_group(s.steps()[3], {0, 0, 1, -1}), 1);
}

TEST(Graph, SortsAndFindsTheHeaviestChain) {
  Graph graph(4);
  graph.add_edge(2, 0);
  graph.add_edge(0, 1);
  graph.add_edge(3, 1);
  const auto sorted = graph.sort({1, 1, 1, 5});
  ASSERT_EQ(sorted.order.size(), 4u);
  const auto place = [&](int node) { return std::find(sorted.order.begin(), sorted.order.end(), node); };
  EXPECT_LT(place(2), place(0));
  EXPECT_LT(place(0), place(1));
  EXPECT_EQ(sorted.depth[1], 6);
  EXPECT_TRUE(sorted.cycle.empty());
}

TEST(Graph, NamesExactlyTheCycleAndNotWhatHangsOnIt) {
  Graph graph(6);
  graph.add_edge(0, 1);
  graph.add_edge(1, 2);
  graph.add_edge(2, 3);
  graph.add_edge(3, 1);
  graph.add_edge(3, 4);
  graph.add_edge(4, 5);
  auto cycle = graph.sort(std::vector<int>(6, 0)).cycle;
  std::sort(cycle.begin(), cycle.end());
  EXPECT_EQ(cycle, (std::vector<int>{1, 2, 3}));
}

TEST(Graph, NamesASelfLoop) {
  Graph graph(2);
  graph.add_edge(1, 1);
  EXPECT_EQ(graph.sort({0, 0}).cycle, std::vector<int>{1});
}

}  // namespace
