// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/schedule/step_graph.hpp"

namespace {

using namespace baton;

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
