// SPDX-License-Identifier: Apache-2.0
// The oracle of models: its gradients are slopes of its own loss, and each rank has the sums of its
// own tokens.
#include "sp_methods/models/reference/oracle.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "sp_methods/models/reference/layers.hpp"

namespace baton {
namespace {

ModelProblem small(Attention kind) {
  ModelProblem problem;
  ModelShape& shape = problem.stack.shape;
  shape.width = 6;
  shape.mlp = 5;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.d_k = 3;
  shape.d_v = 4;
  shape.gate_rank = 2;
  shape.vocabulary = 7;
  shape.layers = {kind};
  (kind == Attention::linear ? problem.stack.linear : problem.stack.softmax) =
      &find_method(kind == Attention::linear ? "zeco" : "ring_attention_softmax");
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

class Slopes : public testing::TestWithParam<Attention> {};

TEST_P(Slopes, OfTheInputAndOfEveryWeight) {
  const ModelProblem problem = small(GetParam());
  ReferenceBlock block(problem, 0);
  Matrix x = drawn(problem, "x");
  const Matrix d_out = drawn(problem, "d_y");
  block.forward(x);
  WeightGradients gradients;
  const Matrix d_x = block.backward(d_out, gradients);
  constexpr double step = 1e-5;
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
  for (const Weight& weight : problem.stack.shape.weights(GetParam()))
    for (std::int64_t i = 0; i < weight.count(); i += 3) {
      double sum = 0;
      for (const Matrix& of_rank : gradients.at(weight.name)) sum += of_rank.data()[i];
      EXPECT_NEAR(slope(block.weight(weight.name).data()[i]), sum, 1e-6) << weight.name << " " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Slopes, testing::Values(Attention::linear, Attention::softmax));

TEST(ModelOracle, ShardsAreSumsOverTheRanks) {
  ModelProblem problem = small(Attention::linear);
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
  EXPECT_THROW(static_cast<void>(ModelOracle(small(Attention::linear)).expected("z", 0)), std::out_of_range);
}

}  // namespace
}  // namespace baton
