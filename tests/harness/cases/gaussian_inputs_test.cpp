// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/gaussian_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace {

using namespace baton;

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
