// SPDX-License-Identifier: Apache-2.0
// The device bodies of a model's kernels against their host bodies, on numbers that bf16 holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "sp_methods/models/kernels/device/product.cuh"
#include "tests/sp_methods/models/kernels/device/steps.cuh"

namespace baton {
namespace {

constexpr double of_bf16 = 3e-3;  // the root mean square of its rounding is 1.6e-3 at most

/// Compares a step's results, and those of a second run to the last bit.
void expect_right(const DeviceStep& step, const std::string& what, double tolerance = of_bf16) {
  SCOPED_TRACE(what);
  ASSERT_EQ(step.unsupported().reason(), "");
  const auto expected = step.on_host(), got = step.on_device();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (!expected[i].empty()) {
      EXPECT_LE(error_of(got[i], expected[i]), tolerance) << "result " << i;
    }
}

void expect_same_again(const DeviceStep& step) {
  if (step.unsupported()) return;
  EXPECT_EQ(step.on_device(), step.on_device());
}

constexpr std::int64_t counts[]{1, 37, 3001};
constexpr std::int64_t widths[]{8, 64, 128, 200, 512, 2048};

/// Steps on a GPU; skipped where there is none.
class DeviceBodies : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }
};

using Products = DeviceBodies;
using Ends = DeviceBodies;
using Gates = DeviceBodies;

template <class Contract>
class RowBody : public DeviceBodies {};
using RowContracts = testing::Types<RmsNorm, RmsNormGradients, GatedNorm, GatedNormGradients, LogGates,
                                    LogGateGradients, FixedGates, Logistic, LogisticGradients, SigmoidGate,
                                    SigmoidGateGradients, SwiGlu, SwiGluGradients>;
TYPED_TEST_SUITE(RowBody, RowContracts);

TYPED_TEST(RowBody, DoesWhatItsHostBodyDoes) {
  for (const std::int64_t width : widths)
    for (const std::int64_t count : counts) {
      const DeviceStep step = row_step<TypeParam>(count, width);
      expect_right(step, std::to_string(count) + " rows of " + std::to_string(width));
      expect_same_again(step);
    }
}

TYPED_TEST(RowBody, TakesTheWidestRows) {
  expect_right(row_step<TypeParam>(50, 4096), "4096");
  expect_right(row_step<TypeParam>(50, 2056), "2056");
}

TYPED_TEST(RowBody, RefusesRowsThatAreNoMultipleOfEight) {
  EXPECT_TRUE(row_step<TypeParam>(3, 12).unsupported());
}

TEST_F(Products, ComputesEveryFormOfAProduct) {
  for (const Dtype out : {Dtype::bf16, Dtype::f32})
    for (int form = 0; form < 16; ++form) {
      const Product p{.rows = 96,
                      .columns = 48,
                      .depth = 160,
                      .transposes_a = (form & 1) != 0,
                      .transposes_b = (form & 2) != 0,
                      .adds = (form & 4) != 0,
                      .out = out};
      const DeviceStep step = product_step(p, (form & 8) != 0);
      if (const Refusal lacking = step.unsupported()) GTEST_SKIP() << lacking.reason();
      expect_right(step, "form " + std::to_string(form), out == Dtype::bf16 ? of_bf16 : 1e-6);
    }
}

/// The largest error at some rows of a product that is as large as a model's.
double error_at_rows(const DeviceStep& step, const Product& p) {
  const auto got = step.on_device();
  std::vector<float> rows, expected;
  for (std::int64_t i = 0; i < p.rows; i += p.rows / 3 + 1)
    for (std::int64_t j = 0; j < p.columns; j += p.columns / 34 + 1) {
      double sum = 0;
      for (std::int64_t n = 0; n < p.depth; ++n)
        sum += double{step.value(0, p.transposes_a ? n * p.rows + i : i * p.depth + n)} *
               double{step.value(1, p.transposes_b ? j * p.depth + n : n * p.columns + j)};
      rows.push_back(got[0][i * p.columns + j]);
      expected.push_back(static_cast<float>(sum));
    }
  return error_of(rows, expected);
}

TEST_F(Products, ComputesProductsOfTheTimedSize) {
  constexpr std::int64_t tokens = 8192, width = 2048, mlp = 5632;
  for (const Product& p :
       {Product{.rows = tokens, .columns = mlp, .depth = width, .out = Dtype::bf16},
        Product{.rows = tokens, .columns = 16, .depth = width, .out = Dtype::bf16},
        Product{.rows = tokens, .columns = width, .depth = mlp, .transposes_b = true, .out = Dtype::bf16},
        Product{.rows = width, .columns = mlp, .depth = tokens, .transposes_a = true},
        Product{.rows = 16, .columns = width, .depth = tokens, .transposes_a = true}}) {
    const DeviceStep step = product_step(p);
    const Refusal refusal = step.unsupported();
    if (refusal) GTEST_SKIP() << refusal.reason();
    EXPECT_LE(error_at_rows(step, p), p.out == Dtype::bf16 ? of_bf16 : 1e-5);
    expect_same_again(step);
  }
}

TEST_F(Gates, DecayByARateOfEachHead) {
  for (const std::int64_t group : {1, 64, 128})
    for (const std::int64_t count : counts)
      for (const float bound : {0.0F, 5.0F}) {
        const GateRows p{count, 32, group, Dtype::bf16, bound};
        const std::string words = std::to_string(count) + " rows of gates, " + std::to_string(group) +
                                  " a head, bound " + std::to_string(bound);
        expect_right(decay_gates_step(p), words);
        const DeviceStep gradients = decay_gate_gradients_step(p, bound == 0 && group == 1);
        expect_right(gradients, words);
        expect_same_again(gradients);
      }
}

TEST_F(Gates, StepsOfMamba2AreThoseOfTheHost) {
  for (const StepRows& p :
       {StepRows{37, 8, 64, 11.3F, false, Dtype::bf16}, {1000, 3, 128, 1, true, Dtype::bf16}}) {
    for (const DeviceStep& step :
         {scale_heads_step(p, true), scale_heads_step(p, false), step_gradients_step(p)}) {
      expect_right(step, step.kernel().name);
      expect_same_again(step);
    }
  }
  EXPECT_TRUE(scale_heads_step({1, 2, 12, 1, false, Dtype::bf16}, true).unsupported());
}

TEST_F(Gates, NormsOfGroupsAreThoseOfTheHost) {
  for (const bool is_gradient : {false, true})
    expect_right(group_norm_step({37, 4096, 1e-5F, Dtype::bf16, 8}, is_gradient), "in groups");
}

TEST_F(Gates, SwiGluOfOneOperandIsSiluOrTheSquareOfRelu) {
  for (const bool is_silu : {false, true})
    for (const bool is_gradient : {false, true})
      expect_right(one_operand_step(37, 200, is_silu, is_gradient), is_gradient ? "gradient" : "forward");
}

TEST_F(Gates, KeysAreJoinedAndTheirGradientsCut) {
  for (const KeyParts& p : {KeyParts{37, 32, 64, 128, Dtype::bf16}, KeyParts{1000, 3, 8, 56, Dtype::bf16}}) {
    expect_right(join_keys_step(p), "keys", 0);
    expect_right(join_key_gradients_step(p), "gradients");
  }
  EXPECT_TRUE(join_keys_step({1, 2, 4, 12, Dtype::bf16}).unsupported());
}

/// Distant tokens too, whose angles an f32 number does not hold.
TEST_F(Gates, RotateByThePositionOfATokenAndBack) {
  for (const std::int64_t first : {0, 1 << 20})
    for (const bool turns_back : {false, true})
      expect_right(rotate_step({37, 4, 256, 64, 1e7, Positions::run(first, 37), turns_back, Dtype::bf16}),
                   "from position " + std::to_string(first));
  expect_right(rotate_step({20, 2, 64, 64, 1e4, {3, 40, 10}, false, Dtype::bf16}), "in two runs");
}

TEST_F(Ends, EmbedTakesRowsOfTheTable) { expect_right(embed_step({300, 40, 136, Dtype::bf16}), "embed", 0); }

TEST_F(Ends, TheGradientOfTheTableIsASumInOrder) {
  for (const std::int64_t width : {136, 4096}) {
    const DeviceStep step = embed_gradients_step({1000, 40, width, Dtype::bf16});
    expect_right(step, "embed_gradients", 1e-6);
    expect_same_again(step);
  }
}

TEST_F(Ends, TheLossIsThatOfTheHost) { expect_right(loss_step(70, 32000), "cross_entropy"); }

TEST_F(Ends, AdamWTakesItsStep) { expect_right(adamw_step(100003), "adamw"); }

}  // namespace
}  // namespace baton
