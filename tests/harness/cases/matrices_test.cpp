// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/matrices.hpp"

#include <gtest/gtest.h>

#include "harness/cases/case.hpp"
#include "harness/cases/collective_workload.hpp"

namespace {

using namespace baton;

/// Sixteen heads, so that owners can have whole ones, and twice as many keys as values: a matrix is
/// as large as two states.
Case case_of(const char* name, int ranks, MapKind map = MapKind::affine) {
  const Shape shape{.heads = 16, .d_k = 8, .d_v = 4, .tokens = 8, .map = map};
  return {.workload = collective_workload(find_collective(name), shape, Direction::forward),
          .backend = &find_backend("local"),
          .ranks = ranks};
}

constexpr std::int64_t state_bytes = 16 * 8 * 4 * 4, matrix_bytes = 2 * state_bytes;

/// Matrices that the busiest rank sends.
double matrices_sent(const char* name, int ranks) {
  return static_cast<double>(matrix_cost_of(case_of(name, ranks), 3)->sent_bytes) / matrix_bytes;
}

TEST(MatrixCost, CountsMatricesApart) {
  for (const char* chain : {"all_scan", "ring_scan"}) EXPECT_EQ(matrices_sent(chain, 8), 0) << chain;
  for (const int ranks : {4, 8, 16}) {
    EXPECT_EQ(matrices_sent("all_gather_scan", ranks), ranks - 1);
    EXPECT_EQ(matrices_sent("all_gather_scan_trimmed", ranks), ranks - 2);
  }
  EXPECT_EQ(matrices_sent("recursive_doubling", 8), 2);
  EXPECT_EQ(matrices_sent("recursive_doubling", 16), 3);
  EXPECT_EQ(matrices_sent("two_shot", 8), 7.0 / 8);
}

TEST(MatrixCost, CountsTheProductsOfTheRankWithMost) {
  const double apply = 2.0 * 8 * state_bytes / 4, compose = 2.0 * 8 * matrix_bytes / 4;
  EXPECT_EQ(matrix_cost_of(case_of("all_scan", 8), 3)->product_flops, apply);
  EXPECT_EQ(matrix_cost_of(case_of("all_gather_scan", 8), 1)->product_flops, 6 * apply);
  EXPECT_EQ(matrix_cost_of(case_of("recursive_doubling", 2), 1)->product_flops, 0);
  // Rank 5 composes with ranks 4 and 2 to 3, and applies the result to the state of those before.
  EXPECT_EQ(matrix_cost_of(case_of("recursive_doubling", 8), 1)->product_flops, 3 * apply + 2 * compose);
}

TEST(MatrixCost, IsThatOfAffineMapsAlone) {
  EXPECT_FALSE(matrix_cost_of(case_of("all_scan", 4, MapKind::diagonal), 1));
  EXPECT_FALSE(matrix_cost_of(case_of("all_scan", 4, MapKind::scalar), 1));
  EXPECT_FALSE(matrix_cost_of(case_of("ring_exchange", 4), 1));
}

}  // namespace
