// SPDX-License-Identifier: Apache-2.0
// By hand: 10 tokens, 2 heads, d_k 3, d_v 5, so that keys have 60 elements and values 100.
#include "sp_methods/kernels/host/left_product/bytes.hpp"

#include <gtest/gtest.h>

namespace baton::test {
namespace {

constexpr double keys = 60, values = 100, heads = 20;

LeftProductBytes of(GateKind gate, std::int64_t element, bool has_rests) {
  return {{10, 2, 3, 5, 64, gate}, element, has_rests};
}

TEST(left_product_bytes, in_f32_every_operand_has_four) {
  for (const auto& [gate, gates] : {std::pair{GateKind::vector, keys}, {GateKind::scalar, heads}}) {
    const LeftProductBytes f32 = of(gate, 4, false);
    EXPECT_EQ(f32.keys(true), 4 * (2 * keys + gates));
    EXPECT_EQ(f32.own_block(), 4 * (2 * keys + 2 * values + gates));
    EXPECT_EQ(f32.block(20), 4 * (keys + 2 * values + gates + 2 * (keys + values)));
    EXPECT_EQ(f32.own_gradients(), 4 * (4 * keys + 3 * values + 2 * gates));
    EXPECT_EQ(f32.block_gradients(20), 4 * (3 * keys + values + 3 * gates + 3 * 2 * (keys + values)));
    EXPECT_EQ(f32.home_gradients(true), 4 * (4 * keys + 3 * values + 3 * gates));
    EXPECT_EQ(f32.home_gradients(false), 0);
  }
}

TEST(left_product_bytes, in_bf16_sums_rests_and_travelling_gradients_keep_four) {
  const LeftProductBytes bf16 = of(GateKind::none, 2, true);
  EXPECT_EQ(bf16.own_block(), 2 * (2 * keys + 2 * values) + 4 * values);
  EXPECT_EQ(bf16.block(10), 2 * (2 * keys + values) + 4 * 2 * values);
  EXPECT_EQ(bf16.own_gradients(), 2 * (4 * keys + 3 * values) + 4 * (2 * keys + values));
  EXPECT_EQ(bf16.block_gradients(10), 2 * (2 * keys + 2 * values) + 4 * (2 * keys + 2 * (keys + values)));
  EXPECT_EQ(bf16.home_gradients(false), 2 * (4 * keys + 2 * values) + 4 * (2 * keys + values));
  EXPECT_EQ(bf16.home_gradients(true) - bf16.home_gradients(false), 4 * (keys + values));
}

TEST(left_product_bytes, gates_add_scaled_queries_and_keys_and_a_sum_of_their_own) {
  const LeftProductBytes bf16 = of(GateKind::vector, 2, true), ungated = of(GateKind::none, 2, true);
  const double scaled = 2 * 2 * keys, gates = 2 * keys, sum = 4 * keys;
  EXPECT_EQ(bf16.keys(false), 2 * 2 * keys + scaled + gates);
  EXPECT_EQ(bf16.keys(true) - bf16.keys(false), 2 * keys);
  EXPECT_EQ(bf16.own_block() - ungated.own_block(), scaled + gates);
  EXPECT_EQ(bf16.block(10) - ungated.block(10), gates);
  EXPECT_EQ(bf16.own_gradients() - ungated.own_gradients(), scaled + 2 * gates + sum);
  EXPECT_EQ(bf16.block_gradients(10) - ungated.block_gradients(10), gates + 2 * sum);
  EXPECT_EQ(bf16.home_gradients(false) - ungated.home_gradients(false), sum);
  EXPECT_EQ(bf16.home_gradients(true) - ungated.home_gradients(true), 2 * sum + 2 * keys + gates);
}

}  // namespace
}  // namespace baton::test
