// SPDX-License-Identifier: Apache-2.0
// What the methods that gather send, counted, beside the closed forms of their sources; and methods
// that see nodes, on several of them, against the oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/check.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 8, heads = 2, d = 64;
constexpr std::int64_t rows = tokens * heads;
constexpr std::int64_t u = rows * d * 4, lse = rows * 4;  // bytes of a rank's queries, and of lse

Layer layer(Pass pass, Mode mode = Mode::overlapped) {
  return {.share = {tokens, heads, d, d, 8, GateKind::none}, .pass = pass, .mode = mode};
}

Counts counts_of(const std::string& method, const Layer& layer, int ranks, int ranks_per_node = 0) {
  return check(method, build_all(find_method(method), layer, ranks, ranks_per_node));
}

/// arXiv 2512.20968: (a-1) u of queries, (b-1) 2u of keys and values, (a-1)(u + lse) of results.
TEST(MeshAttention, SendsWhatItsPaperSays) {
  const std::vector<std::vector<int>> grids{{1, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 5}, {2, 3},
                                            {2, 4}, {3, 3}, {3, 4}, {4, 4}, {4, 8}, {8, 8}};
  for (const auto& grid : grids) {
    const int a = grid[0], b = grid[1];
    for (const char* method : {"mesh_attention", "mesh_attention_zigzag", "mesh_attention_striped"})
      for (const Traffic& rank : counts_of(method, layer(Pass::forward), a * b).ranks)
        EXPECT_EQ(rank.sent_bytes, (a - 1) * u + (b - 1) * 2 * u + (a - 1) * (u + lse)) << a << " x " << b;
  }
}

TEST(MeshAttention, SendsOfTheOrderOfTheRootOfTheRanks) {
  const auto bytes = [](const char* method, int ranks) {
    return static_cast<double>(counts_of(method, layer(Pass::forward), ranks).busiest_sent_bytes());
  };
  for (int ranks : {4, 16, 64}) {
    const double root = std::sqrt(ranks);
    EXPECT_NEAR(bytes("mesh_attention", ranks) / (4 * u * (root - 1)), 1, 0.01) << ranks;
    EXPECT_EQ(bytes("ring_attention_softmax", ranks), 2.0 * u * (ranks - 1)) << ranks;
  }
}

/// The ring of flat ranks and that of the nodes bring the same blocks.
TEST(DoubleRing, SendsEveryBlockOnceWhateverTheNodes) {
  for (int ranks_per_node : {0, 1, 2, 4, 8})
    for (const char* method : {"double_ring", "double_ring_zigzag"})
      EXPECT_EQ(counts_of(method, layer(Pass::forward), 8, ranks_per_node).busiest_sent_bytes(), 7 * 2 * u);
  const Layer backward = layer(Pass::backward);
  EXPECT_EQ(counts_of("double_ring", backward, 8).busiest_sent_bytes(), (7 + 8) * 2 * u);
  EXPECT_EQ(counts_of("double_ring", backward, 8, 1).busiest_sent_bytes(), (7 + 8) * 2 * u);
  EXPECT_EQ(counts_of("double_ring", backward, 8, 4).busiest_sent_bytes(), (7 + 8 + 2) * 2 * u);
}

TEST(DoubleRing, SendsOneBlockANodeAcrossNodes) {
  for (const Schedule& s : build_all(find_method("double_ring"), layer(Pass::forward), 12, 4)) {
    int across = 0;
    for (const Step& step : s.steps())
      across += step.verb == Verb::send && step.peer / 4 != s.home_rank() / 4;
    EXPECT_EQ(across, 2) << "rank " << s.home_rank();
  }
}

TEST(DoubleRing, IsOneRingWhereTheLastNodeIsPartlyFilled) {
  for (Pass pass : {Pass::forward, Pass::backward})
    EXPECT_EQ(counts_of("double_ring", layer(pass), 7, 4).hops,
              counts_of("double_ring", layer(pass), 7).hops);
}

/// The claim is that of the count on nodes of any size.
TEST(DoubleRing, ClaimsWhatIsCountedOnNodes) {
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (int ranks_per_node = 0; ranks_per_node <= ranks; ++ranks_per_node)
      for (Pass pass : {Pass::forward, Pass::backward, Pass::both})
        for (Mode mode : {Mode::overlapped, Mode::exposed}) {
          const Counts counts = counts_of("double_ring_zigzag", layer(pass, mode), ranks, ranks_per_node);
          const auto claim =
              find_method("double_ring_zigzag")
                  .claim(layer(pass, mode), {.ranks = ranks, .ranks_per_node = ranks_per_node});
          EXPECT_EQ(*claim, (Cost{counts.busiest_sent_bytes(), counts.hops}))
              << to_string(pass) << " " << to_string(mode) << " on " << ranks << " ranks, " << ranks_per_node
              << " a node: claimed " << claim->hops << " hops, counted " << counts.hops;
        }
}

TEST(DoubleRing, IsRightOnNodes) {
  for (const char* name : {"double_ring", "double_ring_zigzag"})
    for (int ranks : {4, 6, 8})
      for (int ranks_per_node : {1, 2, 3, 4})
        for (Mode mode : {Mode::overlapped, Mode::exposed}) {
          const SpMethod& method = find_method(name);
          Layer small = layer(Pass::both, mode);
          small.share = {6, 2, 5, 3, 8, GateKind::none};
          auto schedules = build_all(method, small, ranks, ranks_per_node);
          const auto executor = find_executor("local").make(ranks);
          executor->prepare(schedules);
          const LayerOracle oracle({Attention::softmax, small.share, ranks});
          write_layer(*executor, schedules, method, oracle);
          executor->run();
          const Comparison found = compare_layer(*executor, schedules, method, oracle);
          EXPECT_EQ(found.wrong, 0) << name << " on " << ranks << " ranks, " << ranks_per_node
                                    << " a node: " << found.first;
        }
}

/// The fields of a volume's closed form: P-1 blocks of keys and values, and as many gradients.
TEST(AllGatherKv, SendsKeysValuesAndGradientsToAllOthers) {
  for (const char* method : {"all_gather_kv", "all_gather_kv_zigzag", "all_gather_kv_direct"})
    for (int ranks : {1, 2, 3, 8}) {
      for (const Traffic& rank : counts_of(method, layer(Pass::forward), ranks).ranks)
        EXPECT_EQ(rank.sent_bytes, (ranks - 1) * 2 * u);
      for (Pass pass : {Pass::backward, Pass::both})
        for (const Traffic& rank : counts_of(method, layer(pass), ranks).ranks)
          EXPECT_EQ(rank.sent_bytes, (ranks - 1) * 4 * u) << "what the forward pass gathered stays";
    }
}

/// The second group's keys arrive while the first group is computed, unless they are waited for.
TEST(AllGatherKv, GathersAGroupUnderTheWorkOfTheOneBefore) {
  Layer groups = layer(Pass::forward);
  groups.groups = 2;
  EXPECT_EQ(counts_of("all_gather_kv", groups, 4).hops, 3);
  groups.mode = Mode::exposed;
  EXPECT_EQ(counts_of("all_gather_kv", groups, 4).hops, 2 * 3);
  groups.groups = 3;
  EXPECT_EQ(find_method("all_gather_kv").unsupported(groups, 4).reason(),
            "2 heads of keys cannot be cut into 3 groups");
}

TEST(AllGatherKv, ComputesOnTheKeysThatTheQueriesSeeAlone) {
  const auto flops = [](const char* method, int rank) {
    return check(method, build_all(find_method(method), layer(Pass::forward), 4)).ranks[rank].flops;
  };
  EXPECT_GT(flops("all_gather_kv", 3), 5 * flops("all_gather_kv", 0));
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_EQ(flops("all_gather_kv_zigzag", rank), flops("all_gather_kv_zigzag", 0));
}

}  // namespace
