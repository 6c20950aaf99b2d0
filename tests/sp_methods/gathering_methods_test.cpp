// SPDX-License-Identifier: Apache-2.0
// What the methods that gather send, counted, beside the closed forms of their sources.
#include <gtest/gtest.h>

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
