// SPDX-License-Identifier: Apache-2.0
// Relative gates, their guard and their decays on chunks small enough to work out by hand.
//
//   constant log gate c, n tokens, reference r:   x_i = c (i - r)
//
// Cost: none to speak of.
#include "sp_methods/kernels/host/gla/gates.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace baton {
namespace {

TEST(gates, are_relative_to_any_token_and_to_the_edge_before_the_first) {
  const Tile g = Tile::Constant(5, 2, -0.5F);
  Tile x;
  for (const Index reference : {-1, 0, 2, 4}) {
    relative_gates(x, g, reference);
    for (Index i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(x(i, 1), -0.5F * static_cast<float>(i - reference));
  }
}

TEST(gates, guard_fires_on_strong_gates_only) {
  Tile x;
  for (const float gate : {-0.05F, -1.0F, -1.8F}) {
    relative_gates(x, Tile::Constant(64, 3, gate), 32);
    EXPECT_TRUE(within_guard(x)) << gate;
  }
  for (const float gate : {-2.5F, -5.0F, -8.0F}) {
    relative_gates(x, Tile::Constant(64, 3, gate), 32);
    EXPECT_FALSE(within_guard(x)) << gate;
  }
  relative_gates(x, Tile::Constant(1, 3, -1000.0F), 0);
  EXPECT_TRUE(within_guard(x)) << "a single token always fits";
  EXPECT_TRUE(within_guard(Tile(64, 0))) << "no gate";
}

TEST(gates, decays_never_reach_denormal_numbers) {
  Tile factor;
  set_decays(factor, Tile::Constant(1, 1, -500.0F), 1.0F);
  EXPECT_TRUE(std::isnormal(factor(0, 0)));
  EXPECT_LT(factor(0, 0), 1e-34F);
}

TEST(gates, one_number_a_token_and_none_at_all_scale_like_one_a_channel) {
  const Tile in = Tile::Random(4, 3);
  const Tile column = Tile::Constant(4, 1, 0.25F);
  Tile wide, narrow, none;
  scale_rows(wide, in, column.replicate(1, 3));
  scale_rows(narrow, in, column);
  scale_rows(none, in, Tile(4, 0));
  EXPECT_EQ(wide, narrow);
  EXPECT_EQ(none, in);
}

}  // namespace
}  // namespace baton
