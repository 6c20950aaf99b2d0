// SPDX-License-Identifier: Apache-2.0
// The grid of USP: who exchanges with whom, and what it sends. That it computes the layer is in
// every_method_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 16, heads = 8, d_k = 64, d_v = 128;

Layer layer(Pass pass) {
  return {.share = {tokens, heads, d_k, d_v, 8, GateKind::none}, .pass = pass, .dtype = Dtype::bf16};
}

/// The ranks that `rank` of 8 sends to, in an all-to-all or around the ring.
std::set<int> receivers(const char* method, int rank, bool of_all_to_all) {
  const Schedule s = build(find_method(method), layer(Pass::forward), rank, 8);
  std::set<int> all;
  for (const Step& step : s.steps())
    if (step.verb == Verb::send && s.regions()[step.region].empty() != of_all_to_all) all.insert(step.peer);
  return all;
}

TEST(Usp, ExchangesHeadsAmongNeighboursAndKeysAcross) {
  EXPECT_EQ(receivers("usp", 1, true), (std::set{0, 2, 3}));
  EXPECT_EQ(receivers("usp", 1, false), (std::set{5}));
  EXPECT_EQ(receivers("usp", 6, true), (std::set{4, 5, 7}));
  EXPECT_EQ(receivers("usp", 6, false), (std::set{2}));
}

TEST(Usp, AcrossExchangesKeysAmongNeighboursAndHeadsAcross) {
  EXPECT_EQ(receivers("usp_zigzag_across", 1, true), (std::set{3, 5, 7}));
  EXPECT_EQ(receivers("usp_zigzag_across", 1, false), (std::set{0}));
}

TEST(Usp, SendsPartOfItsTensorsAndKeysOfItsHeads) {
  const std::int64_t exchanged = tokens * heads * (2 * d_k + 2 * d_v) * 3 / 4;  // U = 4
  const std::int64_t circulated = tokens * heads * (d_k + d_v);                 // R = 2
  for (const char* method : {"usp", "usp_zigzag", "usp_zigzag_across"}) {
    const Counts forward = check(method, build_all(find_method(method), layer(Pass::forward), 8));
    EXPECT_EQ(forward.busiest_sent_bytes(), (exchanged + circulated) * 2) << method;
    EXPECT_EQ(forward.hops, 3) << method;
    const Counts backward = check(method, build_all(find_method(method), layer(Pass::backward), 8));
    EXPECT_EQ(backward.busiest_sent_bytes(), (exchanged + circulated) * 2 + 2 * circulated * 4) << method;
  }
}

/// Every position of the sequence belongs to one token of one rank, and those of a rank ascend.
TEST(Usp, LaysOutTheWholeSequence) {
  for (const char* method : {"usp", "usp_zigzag", "usp_zigzag_across"})
    for (int ranks : {1, 2, 4, 6, 8, 12}) {
      std::set<std::int64_t> seen;
      for (int rank = 0; rank < ranks; ++rank) {
        const Positions positions = positions_of(find_method(method), rank, ranks, tokens);
        for (std::int64_t t = 0; t < tokens; ++t) {
          EXPECT_TRUE(seen.insert(positions.at(t)).second) << method << ", rank " << rank << " of " << ranks;
          EXPECT_TRUE(t == 0 || positions.at(t - 1) < positions.at(t));
        }
      }
      EXPECT_EQ(*seen.rbegin(), ranks * tokens - 1);
    }
}

TEST(Usp, ZigzagBalancesACausalMask) {
  const Counts counts = check("usp_zigzag", build_all(find_method("usp_zigzag"), layer(Pass::forward), 16));
  const Counts contiguous = check("usp", build_all(find_method("usp"), layer(Pass::forward), 16));
  const auto spread = [](const Counts& counts) {
    double least = counts.ranks[0].flops, most = least;
    for (const Traffic& rank : counts.ranks)
      least = std::min(least, rank.flops), most = std::max(most, rank.flops);
    return most / least;
  };
  EXPECT_LT(spread(counts), 1.1);
  EXPECT_GT(spread(contiguous), 2);
}

}  // namespace
