// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/fold.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace baton;

TEST(Fold, ThePrefixOfTwoMapsDecaysTheFirstByTheSecond) {
  Fold fold(2, 2, false);
  fold.take(std::vector<float>{0.5f, 1, 1, 2, 3, 4});  // its decays meet no state yet
  fold.take(std::vector<float>{0.5f, 2, 10, 20, 30, 40});
  EXPECT_EQ(fold.prefix().values, (std::vector<float>{10.5f, 21, 36, 48}));
  EXPECT_TRUE(fold.prefix().limits.empty());
}

TEST(Fold, MatricesActOnRowsOrTransposedOnes) {
  const std::vector<float> first{9, 9, 9, 9, 1, 2}, second{1, 2, 3, 4, 10, 20};  // [[1, 2], [3, 4]]
  for (const bool transposed : {false, true}) {
    Fold fold(1, 2, true, {.kind = MapKind::affine, .transposed = transposed});
    fold.take(first);  // its matrix meets no state yet
    fold.take(second);
    const ExpectedPrefix prefix = fold.prefix();
    EXPECT_EQ(prefix.values, transposed ? (std::vector<float>{17, 30}) : (std::vector<float>{15, 31}));
    EXPECT_GT(prefix.limits[0], 0);
  }
}

TEST(Fold, AScalarMapDecaysAllRowsOfAHead) {
  Fold fold(4, 1, false, {.kind = MapKind::scalar, .share = 2});
  fold.take(std::vector<float>{1, 1, 2, 4, 6, 8});
  fold.take(std::vector<float>{0.5f, 2, 1, 1, 1, 1});
  EXPECT_EQ(fold.prefix().values, (std::vector<float>{2, 3, 13, 17}));
}

TEST(Fold, AWireThatRoundsLeavesEveryElementALimit) {
  Fold fold(1, 2, true);
  fold.take(std::vector<float>{1, 3, 4});
  const ExpectedPrefix prefix = fold.prefix();
  ASSERT_EQ(prefix.limits.size(), 2u);
  EXPECT_GT(prefix.limits[0], 3 * bf16_roundoff / 2);
  EXPECT_LE(prefix.limits[1], 4 * scan_tolerance(bf16_roundoff, 1) * 1.001);
  EXPECT_GT(prefix.most_error, 0);
}

TEST(Fold, FewValuesMayStrayFurtherThanMany) {
  EXPECT_NEAR(most_rms(1 << 20), 4, 0.01);
  EXPECT_EQ(most_rms(1), 12);
}

TEST(Fold, TheToleranceCountsEveryRoundingThatAFoldCanHave) {
  const double u = 1.0 / 256;
  EXPECT_EQ(scan_tolerance(0, 3), 0);
  EXPECT_EQ(scan_tolerance(u, 0), 0);
  EXPECT_NEAR(scan_tolerance(u, 1), u, 1e-6);
  EXPECT_NEAR(scan_tolerance(u, 3), (1 + u) * (1 + u) * (1 + u) * (1 + u) * (1 + u) - 1, 1e-5);
}

}  // namespace
