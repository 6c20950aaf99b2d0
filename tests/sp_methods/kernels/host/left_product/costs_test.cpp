// SPDX-License-Identifier: Apache-2.0
// Bytes counted by hand: 10 tokens, 2 heads, d_k 3, d_v 5, so that keys have 60 elements and values
// 100.
#include <gtest/gtest.h>

#include "sp_methods/kernels/left_product.hpp"

namespace baton::test {
namespace {

constexpr double keys = 60, values = 100, heads = 20;

/// The bytes of every kernel for one set of parameters.
struct Bytes {
  LeftProduct p;

  double keys(bool circulates) const { return LeftProductKeys::bytes(with(circulates)); }
  double own_block() const { return LeftProductOwnBlock::bytes(p); }
  double block(std::int64_t keys) const { return LeftProductBlock::bytes(with(true, keys)); }
  double own_gradients() const { return LeftProductOwnGradients::bytes(p); }
  double block_gradients(std::int64_t keys) const {
    return LeftProductBlockGradients::bytes(with(true, keys));
  }
  double home_gradients(bool circulates) const { return LeftProductHomeGradients::bytes(with(circulates)); }

 private:
  LeftProduct with(bool circulates, std::int64_t block_tokens = 10) const {
    LeftProduct all = p;
    all.circulates = circulates;
    all.block_tokens = block_tokens;
    return all;
  }
};

Bytes of(GateKind gate, Dtype dtype, bool has_accumulators) {
  return {{.shape = {10, 2, 3, 5, 64, gate}, .dtype = dtype, .has_accumulators = has_accumulators}};
}

TEST(left_product_bytes, in_f32_every_operand_has_four) {
  for (const auto& [gate, gates] : {std::pair{GateKind::vector, keys}, {GateKind::scalar, heads}}) {
    const Bytes f32 = of(gate, Dtype::f32, false);
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
  const Bytes bf16 = of(GateKind::none, Dtype::bf16, true);
  EXPECT_EQ(bf16.own_block(), 2 * (2 * keys + 2 * values) + 4 * values);
  EXPECT_EQ(bf16.block(10), 2 * (2 * keys + values) + 4 * 2 * values);
  EXPECT_EQ(bf16.own_gradients(), 2 * (4 * keys + 3 * values) + 4 * (2 * keys + values));
  EXPECT_EQ(bf16.block_gradients(10), 2 * (2 * keys + 2 * values) + 4 * (2 * keys + 2 * (keys + values)));
  EXPECT_EQ(bf16.home_gradients(false), 2 * (4 * keys + 2 * values) + 4 * (2 * keys + values));
  EXPECT_EQ(bf16.home_gradients(true) - bf16.home_gradients(false), 4 * (keys + values));
}

TEST(left_product_bytes, gates_add_scaled_queries_and_keys_and_a_sum_of_their_own) {
  const Bytes bf16 = of(GateKind::vector, Dtype::bf16, true), ungated = of(GateKind::none, Dtype::bf16, true);
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
