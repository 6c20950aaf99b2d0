// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/curves.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace {

using namespace baton;

const std::vector<Curve::Point> clean{{1, 1e-6}, {2, 2e-6}, {4, 4e-6}, {8, 8e-6}, {16, 16e-6}, {32, 32e-6}};

TEST(RisingCurve, LeavesWhatRisesAsItIs) {
  const Curve curve = rising(clean);
  ASSERT_EQ(curve.points.size(), clean.size());
  for (const auto& point : clean) EXPECT_NEAR(curve.seconds(point.bytes), point.seconds, 1e-11);
}

/// A curve that took the largest time so far would be 300 us from there on.
TEST(RisingCurve, OneTimeThatIsTooLongDoesNotRaiseAllThatFollow) {
  auto found = clean;
  found[1].seconds = 3e-4;
  const Curve curve = rising(found);
  EXPECT_NEAR(curve.seconds(1), 1e-6, 1e-11);
  EXPECT_LT(curve.seconds(8), 40e-6);
  EXPECT_NEAR(curve.seconds(32), 32e-6, 1e-9);
}

/// A curve that took the least time of those to come would be 100 ns up to there.
TEST(RisingCurve, OneTimeThatIsTooShortDoesNotLowerAllBefore) {
  auto found = clean;
  found[4].seconds = 1e-7;
  const Curve curve = rising(found);
  EXPECT_NEAR(curve.seconds(1), 1e-6, 1e-11);
  EXPECT_GT(curve.seconds(16), 5e-7);
  EXPECT_NEAR(curve.seconds(32), 32e-6, 1e-9);
}

TEST(RisingCurve, NoTimeIsNoReading) {
  auto found = clean;
  found[3].seconds = 0;
  const Curve curve = rising(found);
  EXPECT_EQ(curve.points.size(), clean.size() - 1);
  EXPECT_NEAR(curve.seconds(8), 8e-6, 1e-11);
}

TEST(RisingCurve, RisesWhereNothingTakesTime) {
  const Curve curve = rising({{8, 0}, {512, 0}, {4096, 0}});
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_LT(curve.points[0].seconds, curve.points[1].seconds);
  EXPECT_LT(curve.points[1].seconds, curve.points[2].seconds);
}

TEST(RisingCurve, LeavesOutUnknownTimesAndRefusesWhereNothingElseIsThere) {
  const double unknown = std::nan("");
  auto found = clean;
  found[2].seconds = found[5].seconds = unknown;
  EXPECT_EQ(rising(found).points.size(), clean.size() - 2);
  EXPECT_THROW(rising({{1, unknown}, {2, 2e-6}, {4, unknown}}), SystemError) << "no infinite rate";
}

TEST(SharedMemory, IsNotKnownFromUnknownTimes) {
  EXPECT_EQ(shared_seconds(1, 4, 2), 2);
  EXPECT_EQ(shared_seconds(std::nan(""), 4, 2), 0);
  EXPECT_EQ(shared_seconds(1, std::nan(""), 2), 0);
}

}  // namespace
