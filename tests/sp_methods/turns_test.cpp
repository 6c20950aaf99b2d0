// SPDX-License-Identifier: Apache-2.0
// The volumes, the balance and the idle share of the methods that work in turns, TokenRing and
// DistFlashAttention, against the closed forms that are known of them.
#include "tests/sp_methods/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace {

using namespace baton;
using namespace baton::test;

constexpr const char* dist_flash = "dist_flash_attention";
constexpr int most_ranks = 16;
constexpr double tokens = 128;

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

/// The idle share of the paper is 1/(2P) for even P and 0 for odd P. It is counted in blocks of
/// pairs, of which P ranks have P^2 in the P turns of a ring. This schedule takes P/2 turns and a
/// diagonal, 1/2 + 1/(2 tokens) of a turn, of which the same blocks are about 1/(P+1).
TEST(DistFlashAttention, IdlesForHalfATurnOnAverageIfRanksAreEvenAndNeverIfTheyAreOdd) {
  for (const Pass pass : {Pass::forward, Pass::backward})
    for (int P = 1; P <= most_ranks; ++P) {
      const TurnTime time = turn_time(schedules_of(dist_flash, softmax_layer(pass), P));
      EXPECT_EQ(time.worked, P * tokens * (P * tokens + 1) / 2) << P;
      EXPECT_DOUBLE_EQ(time.idle() / (P * P * tokens * tokens), P % 2 == 0 ? 0.5 / P : 0.0) << P;
      EXPECT_DOUBLE_EQ(time.idle() / time.available, P % 2 == 0 ? 1 / (P + 1 + 1 / tokens) : 0.0) << P;
    }
}

/// All ranks have worked in turns 0 to P/2 but those that idle in the last one.
TEST(DistFlashAttention, FirstHalfOfTheRanksIdlesInTheLastTurnIfRanksAreEven) {
  for (int P = 2; P <= most_ranks; ++P) {
    const std::vector<Schedule> schedules = schedules_of(dist_flash, softmax_layer(Pass::forward), P);
    for (int rank = 0; rank < P; ++rank)
      EXPECT_EQ(work_steps(schedules[rank]).size(), P / 2 + 1u - (P % 2 == 0 && rank < P / 2)) << P;
  }
}

/// In units of a tensor: 3P/2 - 1 by rank 0, P - 1 on average (7/8 of the sequence at P = 8).
TEST(DistFlashAttention, RankZeroSendsMostForward) {
  const std::int64_t tensor = tensor_elements * 4, lse = lse_elements * 4;
  for (int P = 2; P <= most_ranks; P += 2) {
    const auto sent = sent_bytes(dist_flash, softmax_layer(Pass::forward), P);
    EXPECT_EQ(sent[0], (3 * P / 2 - 1) * tensor + (P / 2 - 1) * lse) << P;
    EXPECT_EQ(*std::max_element(sent.begin(), sent.end()), sent[0]) << P;
    const std::int64_t helped = (P / 2 - 1) * (P / 2) / 2;
    EXPECT_EQ(sum(sent), P * (P - 1) * tensor + helped * lse) << P;
  }
}

TEST(DistFlashAttention, SendsAsMuchOnAverageIfRanksAreOdd) {
  const std::int64_t tensor = tensor_elements * 4, lse = lse_elements * 4;
  for (int P = 3; P <= most_ranks; P += 2)
    EXPECT_EQ(sum(sent_bytes(dist_flash, softmax_layer(Pass::forward), P)),
              P * (P - 1) * tensor + (P - 1) * (P + 1) / 8 * lse)
        << P;
}

/// The paper's rank P-1 sends 5P/2 - 3 tensors, and ranks 2P - 2 on average, of which one for each
/// pair with a helper is o. Here delta, a number a row, takes its place.
TEST(DistFlashAttention, LastRankSendsMostBackward) {
  const std::int64_t tensor = tensor_elements * 4, lse = lse_elements * 4;
  for (int P = 2; P <= most_ranks; P += 2) {
    const auto sent = sent_bytes(dist_flash, softmax_layer(Pass::backward), P);
    const std::int64_t helpers = P / 2 - 1, helped = helpers * (P / 2) / 2;
    EXPECT_EQ(sent[P - 1], (5 * P / 2 - 3) * tensor - helpers * (tensor - 2 * lse)) << P;
    EXPECT_EQ(*std::max_element(sent.begin(), sent.end()), sent[P - 1]) << P;
    EXPECT_EQ(sum(sent), P * (2 * P - 2) * tensor - helped * (tensor - 2 * lse)) << P;
  }
}

/// At P = 8: keys and values to 4 ranks, and 3 results; gradients of keys and values to 4 ranks,
/// and 3 helpers.
TEST(DistFlashAttention, ResultsAndGradientsAreOfF32) {
  const std::int64_t narrow = tensor_elements * 2, wide = tensor_elements * 4, lse = lse_elements * 4;
  const auto forward = sent_bytes(dist_flash, softmax_layer(Pass::forward, Dtype::bf16), 8);
  EXPECT_EQ(forward[0], 4 * 2 * narrow + 3 * (wide + lse));
  const auto backward = sent_bytes(dist_flash, softmax_layer(Pass::backward, Dtype::bf16), 8);
  EXPECT_EQ(backward[7], 4 * 2 * wide + 3 * (2 * narrow + 2 * lse));
}

/// The released code sends keys and values in the last turn to ranks that idle, too.
TEST(DistFlashAttention, NothingTravelsThatNobodyReads) {
  for (int P = 2; P <= most_ranks; ++P)
    for (const Schedule& s : schedules_of(dist_flash, softmax_layer(Pass::both), P)) {
      const auto reads = [&](const Slice& came) {
        return std::any_of(s.steps().begin(), s.steps().end(), [&](const Step& step) {
          return step.verb == Verb::compute && std::count(step.reads.begin(), step.reads.end(), came) > 0;
        });
      };
      for (const Step& step : s.steps())
        if (step.verb == Verb::recv && step.writes[0].count == tensor_elements) {
          EXPECT_TRUE(reads(step.writes[0])) << P;
        }
    }
}

}  // namespace
