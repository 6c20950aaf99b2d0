// SPDX-License-Identifier: Apache-2.0
// What the methods that gather send, counted, beside the closed forms of their sources.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr std::int64_t tokens = 8, heads = 2, d = 64;
constexpr std::int64_t rows = tokens * heads;
constexpr std::int64_t u = rows * d * 4, lse = rows * 4;  // bytes of a rank's queries, and of lse

Layer layer(Pass pass, Mode mode = Mode::overlapped) {
  return {.share = {tokens, heads, d, d, 8, GateKind::none}, .pass = pass, .mode = mode};
}

Counts counts_of(const std::string& method, const Layer& layer, int ranks, int ranks_a_node = 0) {
  return check(method, build_all(find_method(method), layer, ranks, ranks_a_node));
}

/// arXiv 2512.20968: (a-1) u of queries, (b-1) 2u of keys and values, (a-1)(u + lse) of results.
TEST(MeshAttention, SendsWhatItsPaperSays) {
  const std::vector<std::vector<int>> grids{{1, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 5}, {2, 3},
                                            {2, 4}, {3, 3}, {3, 4}, {4, 4}, {4, 8}, {8, 8}};
  for (const auto& grid : grids) {
    const int a = grid[0], b = grid[1];
    for (const char* method : {"mesh_attention", "mesh_attention_zigzag"})
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

TEST(AllGatherKv, ComputesOnTheKeysThatTheQueriesSeeAlone) {
  const auto flops = [](const char* method, int rank) {
    return check(method, build_all(find_method(method), layer(Pass::forward), 4)).ranks[rank].flops;
  };
  EXPECT_GT(flops("all_gather_kv", 3), 5 * flops("all_gather_kv", 0));
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_EQ(flops("all_gather_kv_zigzag", rank), flops("all_gather_kv_zigzag", 0));
}

}  // namespace
