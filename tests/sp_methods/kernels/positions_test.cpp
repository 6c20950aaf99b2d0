// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/positions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace baton;
using testing::ElementsAre;
using Tokens = Run;  // which is the name of a member of each test

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

TEST(Halo, WalksBackOverShortAndEmptyShares) {
  const std::vector<Tokens> equal{{0, 0, 2}, {1, 0, 2}, {2, 0, 2}, {3, 0, 2}};
  EXPECT_THAT(halo(equal, 0, 3), ElementsAre());
  EXPECT_THAT(halo(equal, 1, 3), ElementsAre(Tokens{0, 0, 2}));
  EXPECT_THAT(halo(equal, 2, 3), ElementsAre(Tokens{0, 1, 1}, Tokens{1, 0, 2}));
  EXPECT_THAT(halo(equal, 3, 3), ElementsAre(Tokens{1, 1, 1}, Tokens{2, 0, 2}));
  const std::vector<Tokens> unequal{{0, 0, 3}, {1, 0, 0}, {2, 0, 1}, {3, 0, 4}};
  EXPECT_THAT(halo(unequal, 2, 3), ElementsAre(Tokens{0, 0, 3}));
  EXPECT_THAT(halo(unequal, 3, 3), ElementsAre(Tokens{0, 1, 2}, Tokens{2, 0, 1}));
}

TEST(Halo, OfZigzagPiecesComesFromTheRankBeforeAndTheRankBehind) {
  const Cut four{Layout::zigzag, 4, 8}, two{Layout::zigzag, 2, 8};
  const auto of = [](const Cut& cut, int rank, int piece) {
    return halo(cut.runs(), static_cast<std::size_t>(cut.place(rank, piece)), 2);
  };
  EXPECT_THAT(of(four, 1, 0), ElementsAre(Tokens{0, 2, 2}));
  EXPECT_THAT(of(four, 1, 1), ElementsAre(Tokens{2, 6, 2}));
  EXPECT_THAT(of(four, 3, 1), ElementsAre(Tokens{3, 2, 2})) << "the two pieces of the last rank touch";
  EXPECT_THAT(of(two, 0, 1), ElementsAre(Tokens{1, 6, 2}));
}

TEST(Cut, RunsAreItsPositionsInOrder) {
  for (const Layout layout : {Layout::contiguous, Layout::zigzag})
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (std::int64_t tokens = 0; tokens <= 7; ++tokens) {
        const Cut cut{layout, ranks, tokens};
        std::int64_t position = 0;
        for (const Tokens& run : cut.runs())
          for (std::int64_t t = 0; t < run.count; ++t)
            EXPECT_EQ(cut.positions(run.rank).at(run.first + t), position++);
        EXPECT_EQ(position, cut.sequence());
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
