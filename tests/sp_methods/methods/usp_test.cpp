// SPDX-License-Identifier: Apache-2.0
// Methods on a grid of ranks: who exchanges with whom, and what it sends. That they compute the
// layer is in every_method_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 16, heads = 8, d_k = 64, d_v = 128;
constexpr const char* all_methods[] = {"usp", "usp_zigzag", "usp_zigzag_across", "ulysses_all_gather",
                                       "ulysses_all_gather_zigzag"};

Layer layer(Pass pass, Mode mode = Mode::overlapped) {
  return {.share = {tokens, heads, d_k, d_v, 8, GateKind::none},
          .pass = pass,
          .mode = mode,
          .dtype = Dtype::bf16};
}

Counts counts_of(const std::string& method, const Layer& layer, int ranks) {
  return check(method, build_all(find_method(method), layer, ranks));
}

/// The ranks that `rank` of 8 sends to in the named collective, or outside of all if it is empty.
std::set<int> receivers(const char* method, int rank, const std::string& collective) {
  const Schedule s = build(find_method(method), layer(Pass::both), rank, 8);
  std::set<int> all;
  for (const Step& step : s.steps())
    if (step.verb == Verb::send && s.regions()[step.region] == collective) all.insert(step.peer);
  return all;
}

TEST(Usp, ExchangesHeadsAmongNeighboursAndKeysAcross) {
  for (const char* method : all_methods) {
    if (std::string(method) == "usp_zigzag_across") continue;
    EXPECT_EQ(receivers(method, 1, "direct_all_to_all"), (std::set{0, 2, 3})) << method;
    EXPECT_EQ(receivers(method, 6, "direct_all_to_all"), (std::set{4, 5, 7})) << method;
  }
  EXPECT_EQ(receivers("usp", 1, ""), (std::set{5}));
  EXPECT_EQ(receivers("usp", 6, ""), (std::set{2}));
  for (const char* collective : {"ring_all_gather", "ring_reduce_scatter"}) {
    EXPECT_EQ(receivers("ulysses_all_gather", 1, collective), (std::set{5}));
    EXPECT_EQ(receivers("ulysses_all_gather_zigzag", 6, collective), (std::set{2}));
  }
}

TEST(Usp, AcrossExchangesKeysAmongNeighboursAndHeadsAcross) {
  EXPECT_EQ(receivers("usp_zigzag_across", 1, "direct_all_to_all"), (std::set{3, 5, 7}));
  EXPECT_EQ(receivers("usp_zigzag_across", 1, ""), (std::set{0}));
}

TEST(Usp, SendsPartOfItsTensorsAndKeysOfItsHeads) {
  const std::int64_t exchanged = tokens * heads * (2 * d_k + 2 * d_v) * 3 / 4;  // U = 4
  const std::int64_t block = tokens * heads * (d_k + d_v);                      // R = 2
  for (const std::string method : all_methods) {
    const Counts forward = counts_of(method, layer(Pass::forward), 8);
    EXPECT_EQ(forward.busiest_sent_bytes(), (exchanged + block) * 2) << method;
    EXPECT_EQ(forward.hops, 3) << method;
    const int hops_of_gradients = method.starts_with("usp") ? 2 : 1;
    const Counts backward = counts_of(method, layer(Pass::backward), 8);
    EXPECT_EQ(backward.busiest_sent_bytes(), (exchanged + block) * 2 + hops_of_gradients * block * 4)
        << method;
  }
}

/// Every position of the sequence belongs to one token of one rank, and those of a rank ascend.
TEST(Usp, LaysOutTheWholeSequence) {
  for (const char* method : all_methods)
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
  const auto spread = [](const char* method) {
    const Counts counts = counts_of(method, layer(Pass::forward), 16);
    double least = counts.ranks[0].flops, most = least;
    for (const Traffic& rank : counts.ranks)
      least = std::min(least, rank.flops), most = std::max(most, rank.flops);
    return most / least;
  };
  for (const char* method : {"usp_zigzag", "ulysses_all_gather_zigzag"}) EXPECT_LT(spread(method), 1.1);
  for (const char* method : {"usp", "ulysses_all_gather"}) EXPECT_GT(spread(method), 2);
}

/// The claim is that of the count, with head groups too and where ranks share a head of keys.
TEST(Usp, GatheringClaimsWhatIsCounted) {
  for (int ranks : {1, 2, 4, 6, 8, 12, 16})
    for (Pass pass : {Pass::forward, Pass::backward, Pass::both})
      for (Mode mode : {Mode::overlapped, Mode::exposed})
        for (std::int64_t kv_heads : {1, 12, 48})
          for (int groups : {1, 2, 3, 4}) {
            Layer one = layer(pass, mode);
            one.share.heads = 48;
            one.share.kv_heads = kv_heads;
            one.groups = groups;
            const SpMethod& method = find_method("ulysses_all_gather_zigzag");
            if (method.unsupported(one, ranks)) continue;
            const Counts counts = counts_of(method.name, one, ranks);
            const auto claim = method.claim(one, {.ranks = ranks});
            EXPECT_EQ(*claim, (Cost{counts.busiest_sent_bytes(), counts.hops}))
                << to_string(pass) << " " << to_string(mode) << " on " << ranks << " ranks, " << kv_heads
                << " heads of keys in " << groups << " groups: claimed " << claim->hops << " hops, counted "
                << counts.hops;
          }
}

/// The second group's keys arrive while the first group is computed, unless they are waited for.
TEST(Usp, GathersAGroupUnderTheWorkOfTheOneBefore) {
  Layer groups = layer(Pass::forward);
  groups.groups = 2;
  EXPECT_EQ(counts_of("ulysses_all_gather", groups, 8).hops, 1 + 1 + 1);
  groups.mode = Mode::exposed;
  EXPECT_EQ(counts_of("ulysses_all_gather", groups, 8).hops, 3 + 2 * 1 + 1);
  groups.groups = 4;
  EXPECT_EQ(find_method("ulysses_all_gather").unsupported(groups, 8).reason(),
            "2 heads of keys cannot be cut into 4 groups");
  EXPECT_EQ(find_method("usp").unsupported(groups, 8).reason(), "its exchange is not cut into head groups");
}

}  // namespace
