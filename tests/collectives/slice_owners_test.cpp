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
  EXPECT_EQ(owners.owned_shares(shape, 0), 6);  // slices of 3, 3 and 4 rows
  EXPECT_EQ(owners.owned_shares(shape, 1), 4);
}

/// The rows that each of `ranks` ranks owns.
std::vector<std::int64_t> balanced(std::int64_t rows, int ranks, int blocks = 1) {
  const auto owners = SliceOwners::of_all(rows, ranks, blocks);
  std::vector<std::int64_t> owned;
  for (int rank = 0; rank < ranks; ++rank) owned.push_back(owners.owned_shares({1, rows, 4}, rank));
  return owned;
}

TEST(SliceOwners, BalancedOnesLeaveLessToTheEnds) {
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(balanced(60, 1), (Rows{60}));
  EXPECT_EQ(balanced(60, 2), (Rows{60, 0}));
  EXPECT_EQ(balanced(60, 3), (Rows{0, 60, 0}));
  EXPECT_EQ(balanced(60, 4), (Rows{10, 20, 20, 10}));
  EXPECT_EQ(balanced(46, 8), (Rows{5, 6, 6, 6, 6, 6, 6, 5}));
  EXPECT_EQ(balanced(46, 8, 100), balanced(46, 8)) << "blocks change no share";
  EXPECT_EQ(balanced(8, 8), Rows(8, 1)) << "rounded to the nearest";
}

TEST(SliceOwners, BalancedPortsCarryTheSame) {
  for (int ranks = 4; ranks <= 16; ++ranks) {
    const Shape shape{1, 64 * (ranks * ranks - 2 * ranks - 2), 1 << 20};
    const auto owners = SliceOwners::of_all(shape.rows(), ranks, 4);
    const auto first = static_cast<double>(owners.sent_elements(shape, 0, ranks));
    for (int rank = 1; rank + 1 < ranks; ++rank)
      EXPECT_NEAR(static_cast<double>(owners.sent_elements(shape, rank, ranks)) / first, 1, 1e-4) << ranks;
  }
}

TEST(SliceOwners, TakeWholeHeadsWhereHeadsShareAMatrix) {
  // Three heads of three rows of two elements, under matrices of four.
  const Map map{{0, 0, 12}, {0, 12, 18}, 2, {.kind = MapKind::affine, .share = 3}};
  const SliceOwners owners{0, 2, 2};
  EXPECT_EQ(owners.part(map, 0).decay, (Slice{0, 0, 4}));
  EXPECT_EQ(owners.part(map, 1).state, (Slice{0, 18, 12}));
  EXPECT_EQ(owners.part(map, 1).form.first, 0);
}

}  // namespace
