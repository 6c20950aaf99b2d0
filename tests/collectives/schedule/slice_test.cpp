// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/slice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace baton;

TEST(Slice, BlocksCoverItWithoutOverlapAtUnitBoundaries) {
  const Slice slice{3, 7, 10 * 4};
  for (int n : {1, 3, 10, 16}) {
    std::int64_t at = slice.offset;
    for (int k = 0; k < n; ++k) {
      const Slice block = slice.block(k, n, 4);
      EXPECT_EQ(block.offset, at);
      EXPECT_EQ(block.count % 4, 0);
      at = block.end();
    }
    EXPECT_EQ(at, slice.end());
  }
}

TEST(Slice, MoreBlocksThanUnitsLeavesSomeEmpty) {
  const Slice slice{0, 0, 6};
  int empty = 0;
  for (int k = 0; k < 5; ++k) empty += slice.block(k, 5, 3).empty();
  EXPECT_EQ(empty, 3);
}

TEST(Slice, OverlapsWhereAnElementLiesInBoth) {
  const Slice slice{3, 10, 5};
  EXPECT_TRUE(slice.overlaps(slice));
  EXPECT_TRUE(slice.overlaps({3, 14, 9}));
  EXPECT_TRUE(slice.overlaps({3, 0, 11}));
  EXPECT_TRUE(slice.overlaps({3, 11, 1}));
  EXPECT_FALSE(slice.overlaps({3, 15, 9}));
  EXPECT_FALSE(slice.overlaps({3, 0, 10}));
  EXPECT_FALSE(slice.overlaps({2, 10, 5})) << "of another buffer";
  EXPECT_FALSE(slice.overlaps({3, 12, 0})) << "an empty slice has no element";
}

TEST(Map, CutsDecayAndStateAtTheSameRows) {
  const Map map{{0, 0, 6}, {0, 6, 6 * 5}, 5};
  const Map block = map.block(1, 3);
  EXPECT_EQ(block.decay, (Slice{0, 2, 2}));
  EXPECT_EQ(block.state, (Slice{0, 6 + 2 * 5, 2 * 5}));
  EXPECT_EQ(block.rows(), 2);
}

TEST(Map, PacksDecayBeforeState) {
  const Map map{{0, 4, 6}, {0, 10, 6 * 5}, 5};
  EXPECT_EQ(map.packed(), (Slice{0, 4, 36}));
  EXPECT_EQ(map.only_state().packed(), map.state);
}

TEST(Map, ABlockWithinAHeadHasTheWholeMatrix) {
  // Two heads of three rows of two elements, under matrices of four.
  const Map map{{0, 0, 8}, {0, 8, 12}, 2, {.kind = MapKind::affine, .share = 3}};
  EXPECT_EQ(map.decay_count(), 8);
  const Map first = map.block(0, 3), middle = map.block(1, 3), last = map.block(2, 3);
  EXPECT_EQ(first.decay, (Slice{0, 0, 4}));
  EXPECT_EQ(middle.decay, (Slice{0, 0, 8}));
  EXPECT_EQ(middle.state, (Slice{0, 12, 4}));
  EXPECT_EQ(middle.form.first, 2);
  EXPECT_EQ(last.decay, (Slice{0, 4, 4}));
  EXPECT_EQ(last.form.first, 1);
}

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
