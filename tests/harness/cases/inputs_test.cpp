// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace {

using namespace baton;

/// The affine map of ranks `from` to `to` - 1 of one row, in f32, each value asserted to be exact.
struct ExactMap {
  float decay = 1, state = 0;

  void then(float next_decay, float next_state) {
    const double exact = static_cast<double>(next_decay) * state + next_state;
    state = next_decay * state + next_state;
    ASSERT_EQ(state, exact);
    decay *= next_decay;
  }
};

TEST(ExactInputs, FoldsOfAnyLengthStayExactInFloat) {
  for (int ranks : {1, 2, 3, 4, 8, 9, 16, 64, 300, 1024, 16384}) {
    const ExactInputs inputs(5, ranks);
    constexpr int rows = 64;
    std::vector<float> decay(rows), state(rows);
    std::vector<ExactMap> prefix(rows), half(rows);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.fill_decay(rank, decay);
      inputs.fill_state(rank, state);
      for (int i = 0; i < rows; ++i) {
        ASSERT_NO_FATAL_FAILURE(prefix[i].then(decay[i], state[i])) << "rank " << rank << " of " << ranks;
        if (rank >= ranks / 2) half[i].then(decay[i], state[i]);
      }
    }
  }
}

TEST(ExactInputs, HoldTheirBoundEvenIfAllStatesAreTheLargest) {
  for (int ranks : {2, 3, 4, 5, 8, 9, 16, 64, 1000, 16384}) {
    const ExactInputs inputs(5, ranks);
    const double largest = std::ldexp(1.0, inputs.state_bits());
    std::vector<float> decay(64);
    std::vector<double> smallest_decay(64, 1);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.fill_decay(rank, decay);
      for (int i = 0; i < 64; ++i) smallest_decay[i] *= decay[i];
    }
    const double unit = *std::min_element(smallest_decay.begin(), smallest_decay.end());
    EXPECT_LE(ranks * largest / unit, 1 << 24) << ranks << " ranks";
    EXPECT_GE(inputs.state_bits(), ranks <= 4 ? 20 : ranks <= 64 ? 15 : 7) << ranks << " ranks";
  }
}

TEST(ExactInputs, HaveBothDecaysAndDifferByRankSeedAndPlace) {
  const ExactInputs inputs(1, 4), other(2, 4);
  std::vector<float> decay(100), state(100), next(100), reseeded(100);
  inputs.fill_decay(0, decay);
  inputs.fill_state(0, state);
  inputs.fill_state(1, next);
  other.fill_state(0, reseeded);
  EXPECT_GT(std::count(decay.begin(), decay.end(), 0.5f), 0);
  EXPECT_GT(std::count(decay.begin(), decay.end(), 1.0f), 0);
  EXPECT_NE(state, next);
  EXPECT_NE(state, reseeded);
  for (float value : state)
    EXPECT_TRUE(value == std::round(value) && std::abs(value) <= 1 << inputs.state_bits());
  EXPECT_LT(std::count_if(state.begin(), state.end(), [](float v) { return from_bf16(to_bf16(v)) == v; }), 5);
}

TEST(GaussianInputs, HaveMeanZeroAndVarianceOne) {
  std::vector<float> state(100000);
  GaussianInputs(3).fill_state(1, state);
  const double count = static_cast<double>(state.size());
  const double mean = std::accumulate(state.begin(), state.end(), 0.0) / count;
  const double square = std::inner_product(state.begin(), state.end(), state.begin(), 0.0) / count;
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(square, 1, 0.03);
}

TEST(GaussianInputs, DecaysLieBetweenZeroAndOne) {
  std::vector<float> decay(10000);
  GaussianInputs(3).fill_decay(1, decay);
  for (float value : decay) ASSERT_TRUE(value > 0 && value < 1) << value;
}

TEST(GaussianInputs, DifferByRankAndSeedAndComeAgain) {
  std::vector<float> state(100), next(100), reseeded(100), again(100);
  GaussianInputs(1).fill_state(0, state);
  GaussianInputs(1).fill_state(1, next);
  GaussianInputs(2).fill_state(0, reseeded);
  GaussianInputs(1).fill_state(0, again);
  EXPECT_NE(state, next);
  EXPECT_NE(state, reseeded);
  EXPECT_EQ(state, again);
}

TEST(GaussianInputs, AlmostNoneIsABf16) {
  std::vector<float> state(1000), decay(1000);
  GaussianInputs(1).fill_state(0, state);
  GaussianInputs(1).fill_decay(0, decay);
  for (const auto& values : {state, decay})
    EXPECT_LT(std::count_if(values.begin(), values.end(), [](float v) { return from_bf16(to_bf16(v)) == v; }),
              5);
}

}  // namespace
