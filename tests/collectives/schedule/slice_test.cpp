// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/slice.hpp"

#include <gtest/gtest.h>

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

}  // namespace
