// SPDX-License-Identifier: Apache-2.0
// The oracle of models: its gradients are slopes of its own loss, and each rank has the sums of its
// own tokens.
#include "sp_methods/models/reference/oracle.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "sp_methods/models/reference/layers.hpp"

namespace baton {
namespace {

/// The kinds of layers that models of today have.
struct Layers {
  const char* name;
  LayerKind kind;
  LinearLayers linear = {};
  SoftmaxLayers softmax = {};
  MlpForm mlp_form = MlpForm::swiglu;
};

const Layers gated_linear{"GatedLinear", Attention::linear, {.heads = 2, .d_k = 3, .d_v = 4, .gate_rank = 2}};
const Layers plain_softmax{
    "Softmax", Attention::softmax, {}, {.heads = 2, .kv_heads = 1, .d_k = 3, .d_v = 4}};
const Layers all_layers[]{
    gated_linear,
    {"GatedDeltaNet",
     Attention::linear,
     {.rule = Rule::delta,
      .heads = 4,
      .qk_heads = 2,
      .d_k = 3,
      .d_v = 4,
      .gate = GateKind::scalar,
      .gate_rank = 0,
      .conv = 4}},
    {"KimiDelta",
     Attention::linear,
     {.rule = Rule::delta,
      .heads = 2,
      .d_k = 3,
      .d_v = 4,
      .gate_rank = 2,
      .conv = 3,
      .output_gate = OutputGate::sigmoid,
      .output_gate_rank = 2}},
    {"BoundedGates",
     Attention::linear,
     {.rule = Rule::delta, .heads = 2, .d_k = 3, .d_v = 4, .gate_rank = 2, .gate_bound = 5}},
    {"Lightning",
     Attention::linear,
     {.form = LinearForm::lightning,
      .heads = 2,
      .d_k = 3,
      .d_v = 4,
      .gate = GateKind::scalar,
      .gate_rank = 0,
      .output_gate = OutputGate::sigmoid}},
    {"Mamba2",
     Attention::linear,
     {.form = LinearForm::mamba,
      .heads = 4,
      .qk_heads = 2,
      .d_k = 3,
      .d_v = 4,
      .gate = GateKind::scalar,
      .gate_rank = 0,
      .conv = 4}},
    {"DeltaNet",
     Attention::linear,
     {.rule = Rule::delta,
      .heads = 2,
      .d_k = 3,
      .d_v = 4,
      .gate = GateKind::none,
      .output_gate = OutputGate::none}},
    plain_softmax,
    {"WithoutAnMlp", {Attention::linear, false}, {.heads = 2, .d_k = 3, .d_v = 4, .gate_rank = 2}},
    {"SquaredRelu",
     Attention::linear,
     {.heads = 2, .d_k = 3, .d_v = 4, .gate_rank = 2},
     {},
     MlpForm::squared_relu},
    {"GatedSoftmax",
     Attention::softmax,
     {},
     {.heads = 4,
      .kv_heads = 2,
      .d_k = 6,
      .d_v = 4,
      .has_output_gate = true,
      .has_head_norms = true,
      .rotated = 4,
      .rotation_base = 10}},
    {"LatentKeys",
     Attention::softmax,
     {},
     {.heads = 2, .kv_heads = 2, .d_k = 5, .d_v = 4, .kv_rank = 3, .shared_k = 2}},
    {"LatentQueriesAndKeys",
     Attention::softmax,
     {},
     {.heads = 2,
      .kv_heads = 2,
      .d_k = 6,
      .d_v = 4,
      .has_output_gate = true,
      .rotated = 2,
      .rotation_base = 10,
      .q_rank = 4,
      .kv_rank = 3,
      .shared_k = 4}},
    {"AllOfEachKeyIsLatent",
     Attention::softmax,
     {},
     {.heads = 2, .kv_heads = 2, .d_k = 3, .d_v = 4, .q_rank = 4, .kv_rank = 5}},
};

ModelProblem small(const Layers& layers) {
  ModelProblem problem;
  ModelShape& shape = problem.stack.shape;
  shape.width = 6;
  shape.mlp = 5;
  shape.linear = layers.linear;
  shape.softmax = layers.softmax;
  shape.mlp_form = layers.mlp_form;
  shape.vocabulary = 7;
  shape.layers = {layers.kind};
  const bool is_linear = layers.kind == Attention::linear;
  (is_linear ? problem.stack.linear : problem.stack.softmax) =
      &find_method(is_linear ? "zeco" : "ring_attention_softmax");
  problem.stack.tokens = 5;
  problem.ranks = 2;
  return problem;
}

Matrix drawn(const ModelProblem& problem, const char* name) {
  const std::int64_t width = problem.stack.shape.width;
  const std::vector<float> values = input_values(problem, name, 0, problem.all_tokens() * width);
  Matrix x(problem.all_tokens(), width);
  std::copy(values.begin(), values.end(), x.data());
  return x;
}

double loss(ReferenceBlock& block, const Matrix& x, const Matrix& d_out) {
  return block.forward(x).cwiseProduct(d_out).sum();
}

class Slopes : public testing::TestWithParam<Layers> {};

TEST_P(Slopes, OfTheInputAndOfEveryWeight) {
  const ModelProblem problem = small(GetParam());
  ReferenceBlock block(problem, 0);
  Matrix x = drawn(problem, "x");
  const Matrix d_out = drawn(problem, "d_y");
  block.forward(x);
  WeightGradients gradients;
  const Matrix d_x = block.backward(d_out, gradients);
  constexpr double step = 3e-6;
  const auto slope = [&](double& number) {
    const double before = number;
    number = before + step;
    const double above = loss(block, x, d_out);
    number = before - step;
    const double below = loss(block, x, d_out);
    number = before;
    return (above - below) / (2 * step);
  };
  for (Eigen::Index i = 0; i < x.size(); i += 7) EXPECT_NEAR(slope(x.data()[i]), d_x.data()[i], 1e-6) << i;
  for (const Weight& weight : problem.stack.shape.weights(GetParam().kind))
    for (std::int64_t i = 0; i < weight.count(); i += 3) {
      double sum = 0;
      for (const Matrix& of_rank : gradients.at(weight.name)) sum += of_rank.data()[i];
      EXPECT_NEAR(slope(block.weight(weight.name).data()[i]), sum, 1e-6) << weight.name << " " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Slopes, testing::ValuesIn(all_layers),
                         [](const auto& info) { return info.param.name; });

TEST(ModelOracle, ShardsAreSumsOverTheRanks) {
  ModelProblem problem = small(gated_linear);
  const ModelOracle whole(problem);
  problem.stack.shards_weights = true;
  const ModelOracle sharded(problem);
  const auto first = whole.expected("d_weights_0", 0), second = whole.expected("d_weights_0", 1),
             shard = sharded.expected("d_weights_0", 1);
  ASSERT_EQ(2 * shard.size(), static_cast<std::size_t>(problem.stack.weight_count(Attention::linear, 2)));
  for (std::size_t i = 0; i < shard.size() && shard.size() + i < first.size(); ++i)
    EXPECT_DOUBLE_EQ(shard[i], first[shard.size() + i] + second[shard.size() + i]) << i;
}

TEST(ModelOracle, KnowsNoOtherOutput) {
  EXPECT_THROW(static_cast<void>(ModelOracle(small(gated_linear)).expected("z", 0)), std::out_of_range);
}

}  // namespace
}  // namespace baton
