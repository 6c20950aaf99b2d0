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

/// The fold of affine maps of one row of 16, in f32, each value asserted to be exact.
void fold_matrices(const ExactInputs& inputs, int ranks, bool transposed) {
  constexpr std::int64_t d = 16;
  std::vector<float> matrix(d * d), state(d), prefix(d, 0.0F), next(d);
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.fill_matrices(rank, matrix, d);
    inputs.fill_state(rank, state);
    for (std::int64_t a = 0; a < d; ++a) {
      double exact = state[a];
      next[a] = state[a];
      for (std::int64_t b = 0; b < d; ++b) {
        const float weight = matrix[transposed ? b * d + a : a * d + b];
        next[a] += weight * prefix[b];
        exact += static_cast<double>(weight) * prefix[b];
        ASSERT_EQ(next[a], exact) << "rank " << rank << " of " << ranks;
      }
    }
    prefix = next;
  }
}

TEST(ExactInputs, FoldsOfMatricesStayExactInFloatInBothDirections) {
  for (int ranks : {1, 2, 3, 4, 8, 16, 20, 21, 64, 1000})
    for (const bool transposed : {false, true})
      ASSERT_NO_FATAL_FAILURE(fold_matrices(ExactInputs(5, ranks, MapKind::affine), ranks, transposed));
}

TEST(ExactInputs, MatricesHaveTwoEntriesInEveryRowAndColumn) {
  constexpr int heads = 8, d = 6, ranks = 4;
  const ExactInputs inputs(1, ranks, MapKind::affine);
  std::vector<float> matrices(heads * d * d);
  int resets = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.fill_matrices(rank, matrices, d);
    for (int head = 0; head < heads; ++head)
      for (int i = 0; i < d; ++i) {
        double row = 0, column = 0;
        for (int j = 0; j < d; ++j) {
          row += std::abs(matrices[(head * d + i) * d + j]);
          column += std::abs(matrices[(head * d + j) * d + i]);
        }
        EXPECT_EQ(row, inputs.is_reset(rank, head) ? 0 : 2);
        EXPECT_EQ(column, row);
        resets += i == 0 && inputs.is_reset(rank, head);
      }
  }
  EXPECT_EQ(resets, heads / 4) << "each on one rank";
}

TEST(ExactInputs, ALongChainOfMatricesHasRowsOfZeros) {
  constexpr int d = 16, ranks = 64;
  const ExactInputs inputs(1, ranks, MapKind::affine);
  std::vector<float> matrix(d * d);
  int zeros = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.fill_matrices(rank, matrix, d);
    for (int i = 0; i < d; ++i) {
      const auto entries = d - std::count(matrix.begin() + i * d, matrix.begin() + (i + 1) * d, 0.0F);
      EXPECT_LE(entries, 1);
      zeros += entries == 0;
    }
  }
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, ranks * d / 16);
}

TEST(ExactInputs, HoldTheirBoundEvenIfAllStatesAreTheLargest) {
  for (int ranks : {2, 3, 4, 5, 8, 9, 16, 64, 1000, 16384}) {
    const ExactInputs inputs(5, ranks);
    const double largest = std::ldexp(1.0, inputs.state_bits());
    std::vector<float> decay(64);
    std::vector<double> smallest_decay(64, 1);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.fill_decay(rank, decay);
      // A reset ends all terms of ranks before it.
      for (int i = 0; i < 64; ++i) smallest_decay[i] *= decay[i] == 0 ? 1 : decay[i];
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

TEST(ExactInputs, OneDecayInEightIsAResetOnOneRank) {
  constexpr int rows = 64, ranks = 4;
  const ExactInputs inputs(1, ranks);
  std::vector<float> decay(rows);
  std::vector<int> resets(ranks, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.fill_decay(rank, decay);
    for (int row = 0; row < rows; ++row) EXPECT_EQ(decay[row] == 0, inputs.is_reset(rank, row));
    resets[rank] = static_cast<int>(std::count(decay.begin(), decay.end(), 0.0F));
  }
  EXPECT_EQ(std::accumulate(resets.begin(), resets.end(), 0), rows / 8);
  EXPECT_LT(*std::max_element(resets.begin(), resets.end()), rows / 8) << "not all on one rank";
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
