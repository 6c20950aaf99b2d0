// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/positions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace baton;
using testing::ElementsAre;

std::vector<std::int64_t> positions_of(const Cut& cut, int rank) {
  std::vector<std::int64_t> all;
  for (std::int64_t t = 0; t < cut.tokens; ++t) all.push_back(cut.positions(rank).at(t));
  return all;
}

TEST(Cut, HasEveryPositionOfTheSequenceOnce) {
  for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped})
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (std::int64_t tokens = 0; tokens <= 9; ++tokens) {
        const Cut cut{layout, ranks, tokens};
        std::vector<int> owners(cut.sequence());
        for (int rank = 0; rank < ranks; ++rank) {
          const auto own = positions_of(cut, rank);
          EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
          for (const std::int64_t position : own) ++owners.at(position);
        }
        EXPECT_EQ(owners, std::vector<int>(cut.sequence(), 1)) << ranks << " ranks of " << tokens;
      }
}

TEST(Cut, ZigzagRanksHaveAPieceFromTheFrontAndItsMirror) {
  const Cut even{Layout::zigzag, 2, 4}, odd{Layout::zigzag, 2, 3};
  EXPECT_THAT(positions_of(even, 0), ElementsAre(0, 1, 6, 7));
  EXPECT_THAT(positions_of(even, 1), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(positions_of(odd, 0), ElementsAre(0, 1, 5));
  EXPECT_THAT(positions_of(odd, 1), ElementsAre(2, 3, 4));
}

/// TransformerEngine pads 698 tokens to 704 where 4 ranks have zigzag tokens (its issue 3331).
TEST(Cut, PaddedHasTheFewestEqualPieces) {
  EXPECT_EQ(Cut::padded(Layout::zigzag, 4, 698).sequence(), 704);
  EXPECT_EQ(Cut::padded(Layout::contiguous, 4, 698).sequence(), 700);
  EXPECT_EQ(Cut::padded(Layout::striped, 4, 698).tokens, 175);
  EXPECT_EQ(Cut::padded(Layout::contiguous, 4, 5).tokens, 2);
  EXPECT_EQ(Cut::padded(Layout::contiguous, 3, 1).sequence(), 3) << "fewer tokens than ranks";
  for (const Layout layout : {Layout::contiguous, Layout::zigzag, Layout::striped})
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (std::int64_t sequence = 1; sequence <= 40; ++sequence) {
        const Cut cut = Cut::padded(layout, ranks, sequence);
        const std::int64_t pieces = ranks * cut.pieces();
        EXPECT_EQ(cut.piece(0), cut.piece(cut.pieces() - 1));
        EXPECT_TRUE(cut.sequence() >= sequence && cut.sequence() < sequence + pieces) << sequence;
      }
}

TEST(Positions, LastOnesAreThoseOfTheLastTokens) {
  const std::int64_t tokens = 6;
  for (const Positions& all :
       {Positions::run(2 * tokens, tokens), Cut{Layout::zigzag, 4, tokens}.positions(1),
        Cut{Layout::striped, 4, tokens}.positions(1)})
    for (std::int64_t count = 0; count <= tokens; ++count) {
      const Positions last = all.last(count, tokens);
      for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(last.at(i), all.at(tokens - count + i));
      for (std::int64_t position = 0; position < 4 * tokens; ++position) {
        std::int64_t visible = 0;
        for (std::int64_t i = 0; i < count; ++i) visible += last.at(i) <= position;
        EXPECT_EQ(last.visible(position, count), visible) << count;
      }
    }
}

}  // namespace
