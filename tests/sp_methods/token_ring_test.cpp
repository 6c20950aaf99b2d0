// SPDX-License-Identifier: Apache-2.0
// TokenRing's volumes against the closed forms that are known of it, and its balance.
#include <gtest/gtest.h>

#include <set>

#include "tests/sp_methods/turns.hpp"

namespace {

using namespace baton;
using namespace baton::test;

constexpr int most_ranks = 16;

/// The closed form without a mask is P-1 hops of q, and as many results with lse. Zigzag tokens
/// need three quarters of it and contiguous ones half, on average over the ranks.
TEST(TokenRing, SendsThreeQuartersOfTheUnmaskedVolumeIfZigzagAndHalfIfContiguous) {
  const std::int64_t one_way = tensor_elements * 4, back = (tensor_elements + lse_elements) * 4;
  for (int P = 2; P <= most_ranks; ++P) {
    const std::int64_t of_all_ranks = P * (P - 1) * (one_way + back);
    const Layer layer = softmax_layer(Pass::forward);
    EXPECT_EQ(4 * sum(sent_bytes("token_ring_zigzag", layer, P)), 3 * of_all_ranks) << P;
    EXPECT_EQ(2 * sum(sent_bytes("token_ring", layer, P)), of_all_ranks) << P;
  }
}

/// In bf16 the closed form counts a result of bf16. This one is f32, twice as large.
TEST(TokenRing, QueriesTravelInTheTensorsTypeAndResultsInF32) {
  const std::int64_t one_way = tensor_elements * 2, back = (tensor_elements + lse_elements) * 4;
  const Layer layer = softmax_layer(Pass::forward, Dtype::bf16);
  EXPECT_EQ(4 * sum(sent_bytes("token_ring_zigzag", layer, 4)), 3 * 4 * 3 * (one_way + back));
}

TEST(TokenRing, BackwardSendsQueriesGradientsOfOutputsAndTwoNumbersARowAndGetsDqBack) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const std::int64_t one_way = 2 * tensor_elements * bytes_of(dtype) + 2 * lse_elements * 4;
    const std::int64_t back = tensor_elements * 4;
    for (int P = 2; P <= most_ranks; ++P)
      EXPECT_EQ(4 * sum(sent_bytes("token_ring_zigzag", softmax_layer(Pass::backward, dtype), P)),
                3 * P * (P - 1) * (one_way + back))
          << P;
  }
}

/// Rank 0 hands on to rank P-1, whose first keys are its own and none of theirs.
TEST(TokenRing, RankZeroSendsHalfOfAllQueriesAndWholeResultsIfZigzag) {
  const int P = 4;
  const std::vector<Schedule> schedules = schedules_of("token_ring_zigzag", softmax_layer(Pass::forward), P);
  std::multiset<std::int64_t> sent;
  for (const Step& step : schedules[0].steps())
    if (step.verb == Verb::send) sent.insert(step.reads[0].count);
  EXPECT_EQ(sent.count(tensor_elements / 2), P - 1u);
  EXPECT_EQ(sent.count(tensor_elements + lse_elements), P - 1u);
  EXPECT_EQ(sent.size(), 2 * (P - 1u));
}

TEST(TokenRing, NoRankIdlesIfZigzag) {
  for (const Pass pass : {Pass::forward, Pass::backward})
    for (int P = 1; P <= most_ranks; ++P) {
      const TurnTime time = turn_time(schedules_of("token_ring_zigzag", softmax_layer(pass), P));
      EXPECT_EQ(time.idle(), 0) << P;
      EXPECT_EQ(time.worked, P * 128.0 * (P * 128.0 + 1) / 2) << P;
    }
}

/// Rank 0 works on the queries of all ranks, the last rank on its own.
TEST(TokenRing, WorksAsLongAsWithoutAMaskIfContiguous) {
  const int P = 4;
  const std::vector<Schedule> schedules = schedules_of("token_ring", softmax_layer(Pass::forward), P);
  for (int rank = 0; rank < P; ++rank)
    EXPECT_EQ(work_steps(schedules[rank]).size(), static_cast<std::size_t>(P - rank));
}

}  // namespace
