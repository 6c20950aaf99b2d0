// SPDX-License-Identifier: Apache-2.0
#include "collectives/slice_owners.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace baton;

TEST(SliceOwners, EveryRankOwnsNeighbouringSlices) {
  const SliceOwners owners{.begin = 6, .size = 3, .slices = 8};
  std::vector<int> by_slice;
  for (int slice = 0; slice < 8; ++slice) by_slice.push_back(owners.owner(slice));
  EXPECT_EQ(by_slice, (std::vector{6, 6, 6, 7, 7, 7, 8, 8}));
}

TEST(SliceOwners, FirstSlicesBoundWhatIsOwned) {
  for (int slices = 1; slices <= 12; ++slices)
    for (int size = 1; size <= slices; ++size) {
      const SliceOwners owners{2, size, slices};
      EXPECT_EQ(owners.first_slice(2), 0);
      EXPECT_EQ(owners.first_slice(2 + size), slices);
      for (int slice = 0; slice < slices; ++slice) {
        EXPECT_LE(owners.first_slice(owners.owner(slice)), slice);
        EXPECT_GT(owners.first_slice(owners.owner(slice) + 1), slice);
      }
    }
}

TEST(SliceOwners, TheirRowsAreAllRows) {
  const Shape shape{.heads = 1, .d_k = 10, .d_v = 2};
  const SliceOwners owners{.begin = 0, .size = 2, .slices = 3};
  EXPECT_EQ(owners.owned_rows(shape, 0), 6);  // slices of 3, 3 and 4 rows
  EXPECT_EQ(owners.owned_rows(shape, 1), 4);
}

}  // namespace
