// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "collectives/schedule/schedule.hpp"

namespace {

using namespace baton;

std::vector<int> sizes(const Nodes& nodes) {
  std::vector<int> all;
  for (int node = 0; node < nodes.count(); ++node) all.push_back(nodes.size(node));
  return all;
}

TEST(Nodes, AreFilledOneAfterTheOther) {
  EXPECT_EQ(sizes({7, 3, false}), (std::vector{3, 3, 1}));
  EXPECT_EQ(sizes({6, 3, false}), (std::vector{3, 3}));
  EXPECT_EQ(sizes({3, 1, false}), (std::vector{1, 1, 1}));
}

TEST(Nodes, ThePartlyFilledOneComesFirstFromTheOtherEnd) {
  EXPECT_EQ(sizes({7, 3, true}), (std::vector{1, 3, 3}));
  EXPECT_EQ(sizes({6, 3, true}), (std::vector{3, 3}));
}

TEST(Nodes, OneNodeHoldsAllWhereNothingElseIsSaid) {
  for (int ranks_a_node : {0, 5, 9}) {
    EXPECT_EQ(sizes({5, ranks_a_node, false}), std::vector{5});
    EXPECT_EQ(Nodes(5, ranks_a_node, true).full_size(), 5);
  }
}

TEST(Nodes, ReversedRanksStayOnTheirNodes) {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (int ranks_a_node = 0; ranks_a_node <= 18; ++ranks_a_node) {
      const Nodes forward(ranks, ranks_a_node, false), reverse(ranks, ranks_a_node, true);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(reverse.of(ranks - 1 - rank), forward.count() - 1 - forward.of(rank));
        for (const Nodes& nodes : {forward, reverse}) {
          EXPECT_LE(nodes.begin(nodes.of(rank)), rank);
          EXPECT_GT(nodes.end(nodes.of(rank)), rank);
        }
      }
    }
}

}  // namespace
