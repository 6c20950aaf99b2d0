// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/alpha_beta.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "collectives/executors/cuda/floor.hpp"
#include "harness/machine/placement.hpp"
#include "tests/harness/measure/known_machine.hpp"

namespace {

using namespace baton;

/// The time of a chain of P ranks in K blocks, (P-2+K) (alpha + N/(K beta)).
double chain_seconds(const AlphaBeta& link, int ranks, double bytes, int blocks) {
  return (ranks - 2 + blocks) * (link.alpha_seconds + bytes / (blocks * link.beta));
}

/// A machine whose messages take so long, beside empty rounds of 4 us.
class FlooredMachine : public KnownMachine {
 public:
  explicit FlooredMachine(double seconds) : KnownMachine(uniform_machine(2, {})), seconds_(seconds) {}
  double one_way_seconds(std::int64_t, int, int) override { return seconds_above_floor(seconds_, 4e-6); }

 private:
  double seconds_;
};

TEST(Link, IsUnknownWhereMessagesTakeNoLongerThanEmptyRounds) {
  FlooredMachine known(6e-6), unknown(3e-6);
  const Placement one_host({0, 0});
  EXPECT_DOUBLE_EQ(measure_alpha_beta(known, Team{}, one_host).alpha_seconds, 2e-6);
  const AlphaBeta found = measure_alpha_beta(unknown, Team{}, one_host);
  EXPECT_EQ(found.alpha_seconds, AlphaBeta{}.alpha_seconds);
  EXPECT_EQ(found.beta, AlphaBeta{}.beta);
  EXPECT_TRUE(std::isfinite(found.bound_seconds(3, 1000)));
}

TEST(Link, TheBestNumberOfBlocksIsTheFastestOfTheModel) {
  const AlphaBeta link{.alpha_seconds = 2e-6, .beta = 5e9};
  for (int ranks : {2, 3, 4, 16, 64}) {
    const int best = link.best_blocks(ranks, 2 << 20, 1 << 20);
    const double least = chain_seconds(link, ranks, 2 << 20, best);
    for (int blocks = 1; blocks < 400; ++blocks)
      EXPECT_GE(chain_seconds(link, ranks, 2 << 20, blocks), 0.999 * least) << ranks << " ranks, " << blocks;
  }
}

TEST(Link, BlocksStayBetweenOneAndTheRows) {
  const AlphaBeta link{.alpha_seconds = 1e-9, .beta = 1e6};
  EXPECT_EQ(link.best_blocks(64, 1 << 30, 128), 128);
  EXPECT_EQ(link.best_blocks(2, 1 << 30, 128), 1);
  EXPECT_EQ(AlphaBeta{}.best_blocks(1, 1 << 30, 128), 1);  // nothing was measured on a rank alone
}

TEST(Link, TheBoundIsAlphaAHopAndBetaAByte) {
  const AlphaBeta link{.alpha_seconds = 1e-6, .beta = 1e9};
  EXPECT_DOUBLE_EQ(link.bound_seconds(3, 1000), 4e-6);
}

TEST(Link, AnEmptyRoundIsPartOfTheBound) {
  const AlphaBeta link{.alpha_seconds = 1e-6, .beta = 1e9, .floor_seconds = 4e-6};
  EXPECT_DOUBLE_EQ(link.bound_seconds(3, 1000), 8e-6);
}

TEST(Link, ProductsThatTakeLongerThanTheBytesAreTheBound) {
  AlphaBeta link{.alpha_seconds = 1e-6, .beta = 1e9};
  EXPECT_DOUBLE_EQ(link.bound_seconds(3, 1000, 1e9), 4e-6) << "no rate was measured";
  link.product_flops_per_second = 1e12;
  EXPECT_DOUBLE_EQ(link.bound_seconds(3, 1000, 5e5), 4e-6);
  EXPECT_DOUBLE_EQ(link.bound_seconds(3, 1000, 1e7), 13e-6);
}

TEST(Link, BlocksFollowTheExecutorsMessagesAndTheBoundTheWire) {
  const AlphaBeta wire{.alpha_seconds = 1e-6, .beta = 4e11};
  AlphaBeta link = wire;
  link.message_alpha_seconds = 1e-5;
  link.message_beta = 1e11;
  EXPECT_EQ(link.best_blocks(4, 2 << 20, 1 << 20), (AlphaBeta{1e-5, 1e11}.best_blocks(4, 2 << 20, 1 << 20)));
  EXPECT_NE(link.best_blocks(4, 2 << 20, 1 << 20), wire.best_blocks(4, 2 << 20, 1 << 20));
  EXPECT_DOUBLE_EQ(link.bound_seconds(1, 1), wire.bound_seconds(1, 1));
}

}  // namespace
