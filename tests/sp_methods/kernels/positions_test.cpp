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
  for (std::int64_t t = 0; t < cut.share(rank); ++t) all.push_back(cut.positions(rank).at(t));
  return all;
}

constexpr Layout layouts[]{Layout::contiguous, Layout::zigzag, Layout::striped};

/// All cuts into unequal shares of 0 to 40 tokens over 1 to 8 ranks. Every third given share is
/// empty.
std::vector<Cut> unequal_cuts() {
  std::vector<Cut> all;
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (std::int64_t sequence = 0; sequence <= 40; ++sequence) {
      for (const Layout layout : layouts)
        for (const ShareRule rule : {ShareRule::even, ShareRule::last})
          all.push_back(Cut::of(layout, ranks, 0, {rule, sequence}));
      Shares given{ShareRule::given, sequence, std::vector<std::int64_t>(ranks)};
      for (std::int64_t left = sequence, rank = 0; rank < ranks; ++rank) {
        given.given[rank] = rank == ranks - 1 ? left : rank % 3 == 1 ? 0 : left * (rank + 1) / (ranks + 1);
        left -= given.given[rank];
      }
      for (const Layout layout : {Layout::contiguous, Layout::zigzag})
        all.push_back(Cut::of(layout, ranks, 0, given));
    }
  return all;
}

TEST(Cut, HasEveryPositionOfTheSequenceOnce) {
  for (const Layout layout : layouts)
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

TEST(Cut, OfUnequalSharesHasEveryPositionOnce) {
  for (const Cut& cut : unequal_cuts()) {
    std::vector<int> owners(cut.sequence());
    std::int64_t most = 0, least = cut.sequence();
    for (int rank = 0; rank < cut.ranks; ++rank) {
      const auto own = positions_of(cut, rank);
      EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
      for (const std::int64_t position : own) ++owners.at(position);
      most = std::max(most, std::ssize(own));
      least = std::min(least, std::ssize(own));
    }
    EXPECT_EQ(owners, std::vector<int>(cut.sequence(), 1)) << cut.ranks << " ranks of " << cut.sequence();
    EXPECT_EQ(cut.tokens, most);
    EXPECT_EQ(cut.least(), least);
  }
}

TEST(Cut, EvenSharesDifferByOneTokenAtMost) {
  for (const Layout layout : layouts)
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (std::int64_t sequence = 0; sequence <= 40; ++sequence) {
        const Cut cut = Cut::of(layout, ranks, 0, {ShareRule::even, sequence});
        EXPECT_LE(cut.tokens - cut.least(), 1);
      }
}

/// The sizes of pieces are those of PyTorch's tensor_split and chunk.
TEST(Cut, SharesAsUsersKnowThem) {
  const auto pieces = [](ShareRule rule, std::int64_t sequence) {
    std::vector<std::int64_t> all;
    for (int rank = 0; rank < 4; ++rank)
      all.push_back(Cut::of(Layout::contiguous, 4, 0, {rule, sequence}).share(rank));
    return all;
  };
  EXPECT_THAT(pieces(ShareRule::even, 10), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(pieces(ShareRule::even, 5), ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(pieces(ShareRule::last, 10), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(pieces(ShareRule::last, 9), ElementsAre(3, 3, 3, 0));
  EXPECT_THAT(pieces(ShareRule::last, 5), ElementsAre(2, 2, 1, 0));
}

TEST(Cut, ZigzagSharesHaveTheirPositions) {
  const auto even = [](int ranks, std::int64_t sequence) {
    return Cut::of(Layout::zigzag, ranks, 0, {ShareRule::even, sequence});
  };
  EXPECT_THAT(positions_of(even(2, 10), 0), ElementsAre(0, 1, 2, 8, 9));
  EXPECT_THAT(positions_of(even(2, 11), 1), ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_THAT(positions_of(even(2, 3), 0), ElementsAre(0));
  EXPECT_THAT(positions_of(even(2, 3), 1), ElementsAre(1, 2));
  EXPECT_THAT(positions_of(even(2, 1), 1), ElementsAre());
  EXPECT_THAT(positions_of(even(4, 10), 0), ElementsAre(0, 1, 9));
  EXPECT_THAT(positions_of(even(4, 10), 3), ElementsAre(5, 6));
  const Cut striped = Cut::of(Layout::striped, 4, 0, {ShareRule::even, 10});
  EXPECT_THAT(positions_of(striped, 1), ElementsAre(1, 5, 9));
  EXPECT_THAT(positions_of(striped, 3), ElementsAre(3, 7));
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
  for (const Layout layout : layouts)
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (std::int64_t sequence = 1; sequence <= 40; ++sequence) {
        const Cut cut = Cut::padded(layout, ranks, sequence);
        const std::int64_t pieces = ranks * cut.pieces();
        EXPECT_EQ(cut.piece(0, 0), cut.piece(0, cut.pieces() - 1));
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
  std::vector<Cut> cuts = unequal_cuts();
  for (const Layout layout : layouts)
    for (int ranks = 1; ranks <= 5; ++ranks)
      for (std::int64_t tokens = 0; tokens <= 7; ++tokens) cuts.push_back({layout, ranks, tokens});
  for (const Cut& cut : cuts) {
    if (cut.layout == Layout::striped) continue;
    std::int64_t position = 0, fronts = 0;
    for (int rank = 0; rank < cut.ranks; ++rank) fronts += cut.piece(rank, 0);
    EXPECT_EQ(cut.fronts(), fronts);
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
