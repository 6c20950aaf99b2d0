// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "collectives/schedule/slice.hpp"

namespace {

using namespace baton;

float rounded(float value) { return from_bf16(to_bf16(value)); }

TEST(Bf16, KeepsWhatHasEightBits) {
  for (float value : {0.0f, -0.0f, 1.0f, -255.0f, 0.00390625f, 1.9921875f}) EXPECT_EQ(rounded(value), value);
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(rounded(257), 256);      // a tie, down to even
  EXPECT_EQ(rounded(259), 260);      // a tie, up to even
  EXPECT_EQ(rounded(257.01f), 258);  // beyond the tie
  EXPECT_EQ(rounded(-257), -256);
}

TEST(Bf16, NeverErrsByMoreThanItsRoundoff) {
  for (float value = 1; value < 2; value += 0.0001f)
    EXPECT_LE(std::abs(rounded(value) - value), bf16_roundoff * value);
}

TEST(Bf16, KeepsInfinitiesAndWhatIsNoNumber) {
  EXPECT_EQ(rounded(-std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::signaling_NaN())));
}

}  // namespace
