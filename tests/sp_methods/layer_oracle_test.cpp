// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/layer_oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace baton;

constexpr GlaShape share{6, 2, 3, 4, 4, GateKind::vector};

TEST(LayerOracle, RanksShareOneSequenceUnlessAlone) {
  const LayerOracle together(Attention::linear, share, 2, false, GateDraw::layer, 5);
  const LayerOracle alone(Attention::linear, share, 2, true, GateDraw::layer, 5);
  const auto first = contiguous_positions(0, 6), second = contiguous_positions(1, 6);
  EXPECT_EQ(together.input("q", 1, second), alone.input("q", 1, second));
  EXPECT_EQ(together.expected("o", first),
            alone.expected("o", first));  // nothing comes before the first rank
  EXPECT_NE(together.expected("o", second), alone.expected("o", second));
  EXPECT_NE(together.expected("dk", first),
            alone.expected("dk", first));  // but later tokens look back at its keys
}

TEST(LayerOracle, ThePrefixIsWhatTheTokensBeforeLeave) {
  const LayerOracle oracle(Attention::linear, {1, 1, 2, 2, 1, GateKind::none}, 2, false, GateDraw::layer, 5);
  const auto k = oracle.input("k", 0, contiguous_positions(0, 1)),
             v = oracle.input("v", 0, contiguous_positions(0, 1));
  const auto prefix = oracle.input("prefix", 1, contiguous_positions(1, 1));
  for (int i : {0, 1})
    for (int j : {0, 1}) EXPECT_FLOAT_EQ(prefix[2 * i + j], k[i] * v[j]);
  EXPECT_EQ(oracle.input("prefix", 0, contiguous_positions(0, 1)), std::vector<float>(4, 0.0f));
}

TEST(LayerOracle, ZigzagRowsAreThoseOfTheirPositions) {
  const GlaShape softmax{4, 1, 2, 2, 4, GateKind::none};
  const LayerOracle oracle(Attention::softmax, softmax, 2, false, GateDraw::layer, 1);
  const auto front = oracle.input("q", 0, contiguous_positions(0, 4)),
             back = oracle.input("q", 1, contiguous_positions(1, 4));
  const auto zigzag = oracle.input("q", 0, zigzag_positions(0, 2, 4));
  EXPECT_EQ(std::vector(zigzag.begin(), zigzag.begin() + 4), std::vector(front.begin(), front.begin() + 4));
  EXPECT_EQ(std::vector(zigzag.begin() + 4, zigzag.end()), std::vector(back.begin() + 4, back.end()));
}

TEST(LayerOracle, StrongGatesAreStrong) {
  const LayerOracle oracle(Attention::linear, share, 2, false, GateDraw::strong, 5);
  double sum = 0;
  for (float gate : oracle.input("g", 0, contiguous_positions(0, 6))) {
    EXPECT_LE(gate, 0);
    sum += gate;
  }
  EXPECT_LT(sum / (6 * 2 * 3), -2);
}

TEST(RelativeError, IsOfTheNormAndNeverPassesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(relative_error({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative_error({3, 5}, {3, 4}), 0.2);
  EXPECT_DOUBLE_EQ(relative_error({0, 2}, {0, 0}), 2);
  EXPECT_TRUE(std::isinf(relative_error({NAN}, {1})));
}

}  // namespace
