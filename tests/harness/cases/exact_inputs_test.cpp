// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/exact_inputs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace baton;

TEST(ExactInputs, FoldsOfAnyLengthStayExactInFloat) {
  for (int ranks : {2, 16, 300, 16384}) {
    const ExactInputs inputs(5, ranks);
    constexpr int rows = 64;
    std::vector<float> decay(rows), state(rows), folded(rows);
    std::vector<double> exact(rows);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.fill_decay(rank, decay);
      inputs.fill_state(rank, state);
      for (int i = 0; i < rows; ++i) {
        folded[i] = decay[i] * folded[i] + state[i];
        exact[i] = static_cast<double>(decay[i]) * exact[i] + state[i];
        ASSERT_EQ(folded[i], exact[i]) << "rank " << rank << " of " << ranks;
      }
    }
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
  for (float value : state) EXPECT_TRUE(value == std::round(value) && std::abs(value) <= 8);
}

}  // namespace
