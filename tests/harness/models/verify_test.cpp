// SPDX-License-Identifier: Apache-2.0
// The comparison of models sees a missing exchange, one wrong gradient and an output that nobody
// wrote.
#include "harness/models/verify.hpp"

#include <gtest/gtest.h>

#include "harness/models/part_by_part.hpp"
#include "sp_methods/models/stack.hpp"

namespace baton {
namespace {

constexpr int ranks = 2;

/// A model that has run on `local`, to be compared with what it should have been.
struct FinishedRun {
  Stack stack;
  std::unique_ptr<Executor> executor = find_executor("local").make(ranks);
  std::vector<Schedule> schedules;
  std::uint64_t seed;

  explicit FinishedRun(Mode mode, std::int64_t tokens = 24, std::uint64_t seed_of = 1, bool is_latent = false)
      : seed(seed_of) {
    stack.linear = &find_method("zeco");
    if (is_latent) {
      stack.softmax = &find_method("all_gather_kv");
      stack.shape.layers = {Attention::softmax, Attention::linear};
      stack.shape.softmax.kv_rank = 8;
      stack.shape.softmax.shared_k = 4;
    }
    stack.tokens = tokens;
    stack.shape.chunk = 8;
    stack.layer.mode = mode;
    for (int rank = 0; rank < ranks; ++rank) schedules.push_back(build(stack, rank, ranks));
    executor->prepare(schedules);
    write_model(*executor, schedules, {stack, ranks, seed});
    executor->run();
  }

  Comparison compared_with(Mode mode) const {
    Stack other = stack;
    other.layer.mode = mode;
    return compare_model(*executor, schedules, ModelOracle({other, ranks, seed}));
  }
};

TEST(CompareModel, IsContentWithARightRun) {
  const Comparison found = FinishedRun(Mode::overlapped).compared_with(Mode::overlapped);
  EXPECT_EQ(found.wrong, 0) << found.first;
  EXPECT_GT(found.relative_error, 0);
  EXPECT_LE(found.relative_error, found.tolerance);
}

TEST(CompareModel, SeesThatTheExchangeIsMissing) {
  const Comparison found = FinishedRun(Mode::compute_only).compared_with(Mode::overlapped);
  EXPECT_GT(found.wrong, 0);
  EXPECT_GT(found.relative_error, 0.01);
}

TEST(CompareModel, NamesTheWrongWeight) {
  FinishedRun run(Mode::overlapped);
  const Slice gradients = run.schedules[1].buffer("d_weights_1");
  const std::vector<float> wrong{1e6F};
  run.executor->write(1, gradients.part(gradients.count - 1, 1), wrong);
  const Comparison found = run.compared_with(Mode::overlapped);
  EXPECT_EQ(found.wrong, 1);
  EXPECT_NE(found.first.find("rank 1, d_weights_1 (mlp_down)"), std::string::npos) << found.first;
}

TEST(CompareModel, SeesWhatWasNotWritten) {
  FinishedRun run(Mode::overlapped);
  const Slice y = run.schedules[0].buffer("y");
  run.executor->scatter(0, y.part(0, 1), 1, poison);
  EXPECT_EQ(run.compared_with(Mode::overlapped).wrong, 1);
}

/// The first token's gradient of a query is along that of an output whose norm is taken, so that it
/// is a difference of terms which are far larger.
TEST(CompareModel, IsContentWithGradientsThatCancel) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Comparison found = FinishedRun(Mode::overlapped, 1, seed).compared_with(Mode::overlapped);
    EXPECT_EQ(found.wrong, 0) << seed << ": " << found.first;
    EXPECT_LE(found.relative_error, found.tolerance);
  }
}

TEST(CompareModel, SeesASlightlyWrongGradientOfFewTokens) {
  FinishedRun run(Mode::overlapped, 1);
  std::vector<float> d_weights(run.schedules[0].buffer("d_weights_0").count);
  run.executor->read(d_weights, 0, run.schedules[0].buffer("d_weights_0"));
  for (float& x : d_weights) x *= 1.001F;
  run.executor->write(0, run.schedules[0].buffer("d_weights_0"), d_weights);
  const auto weights = run.stack.shape.weights(Attention::linear);
  // All weights are wrong but those whose gradient is nothing but rounding, of queries and gates.
  EXPECT_GE(run.compared_with(Mode::overlapped).wrong, std::ssize(weights) - 5);
}

/// What comparing steps with their own operands finds after `spoil` has changed a tensor of rank 0.
Comparison sampled_after(const std::string& buffer, float factor, std::uint64_t seed = 1,
                         bool is_latent = false) {
  FinishedRun run(Mode::overlapped, 24, 1, is_latent);
  const Slice slice = run.schedules[0].buffer(buffer);
  std::vector<float> values(slice.count);
  run.executor->read(values, 0, slice);
  for (float& value : values) value *= factor;
  run.executor->write(0, slice, values);
  return compare_sampled(*run.executor, run.schedules, {run.stack, ranks, seed}, {});
}

TEST(CompareSampledSteps, IsContentWithARightRun) {
  const Comparison found = sampled_after("q_0", 1);
  EXPECT_EQ(found.wrong, 0) << found.first;
  EXPECT_GT(found.relative_error, 0);
  EXPECT_LT(found.relative_error, 1e-5);
}

TEST(CompareSampledSteps, SeesAWrongProduct) {
  const Comparison found = sampled_after("u_0", 1.01F);
  EXPECT_GT(found.wrong, 0);
  EXPECT_NE(found.first.find("(matmul)"), std::string::npos) << found.first;
}

TEST(CompareSampledSteps, SeesWrongGates) { EXPECT_GT(sampled_after("g_1", 1.01F).wrong, 0); }

TEST(CompareSampledSteps, SeesWrongPartsOfKeys) {
  EXPECT_EQ(sampled_after("d_own_k", 1, 1, true).wrong, 0);
  for (const char* part : {"d_own_k", "d_turned_k"}) {
    const Comparison found = sampled_after(part, 1.01F, 1, true);
    EXPECT_NE(found.first.find("(join_key_gradients)"), std::string::npos) << found.first;
  }
}

TEST(CompareSampledSteps, SeesWrongAttention) {
  EXPECT_NE(sampled_after("v_0", 1.01F).first.find("rank 0, layer 0"), std::string::npos);
}

/// What a right comparison finds in a run whose ranks exchanged nothing, so that all products and
/// kernels are right, or in one whose rank 2 has rank 1's attention.
Comparison sampled_after_wrong_exchange(const char* linear, const char* softmax, bool of_wrong_rank,
                                        bool has_backward = true) {
  Stack stack;
  stack.has_backward = has_backward;
  stack.tokens = 24;
  stack.shape.chunk = 8;
  if (linear != nullptr)
    stack.linear = linear == whole_sequence().name ? &whole_sequence() : &find_method(linear);
  if (softmax != nullptr) {
    stack.softmax = &find_method(softmax);
    stack.shape.layers = {Attention::softmax};
  }
  Stack wrong = stack;
  if (!of_wrong_rank) wrong.layer.mode = Mode::compute_only;
  constexpr int many = 3;
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < many; ++rank) schedules.push_back(build(wrong, rank, many));
  const auto executor = find_executor("local").make(many);
  executor->prepare(schedules);
  write_model(*executor, schedules, {stack, many, 1});
  executor->run();
  if (of_wrong_rank) {
    const Slice o = schedules[2].buffer(layer_buffer("o", stack.shape.count() - 1));
    const auto of = [&](int rank) { return stack.runs_whole() ? o.block(rank, many) : o; };
    std::vector<float> values(of(1).count);
    executor->read(values, 1, of(1));
    executor->write(2, of(2), values);
  }
  return compare_sampled(*executor, schedules, {stack, many, 1}, {});
}

TEST(CompareSampledSteps, SeesThatStatesWereDropped) {
  const Comparison found = sampled_after_wrong_exchange("zeco", nullptr, false);
  EXPECT_GT(found.wrong, 0);
  EXPECT_NE(found.first.find("tokens: relative error"), std::string::npos) << found.first;
  EXPECT_GT(found.relative_error, 0.01);
}

TEST(CompareSampledSteps, SeesAnotherRanksResult) {
  EXPECT_NE(sampled_after_wrong_exchange("lasp2", nullptr, true).first.find("rank 2, layer 1"),
            std::string::npos);
}

TEST(CompareSampledSteps, SeesAnotherRanksSoftmax) {
  const Comparison found = sampled_after_wrong_exchange(nullptr, "all_gather_kv", true);
  EXPECT_NE(found.first.find("of drawn queries"), std::string::npos) << found.first;
}

TEST(CompareSampledSteps, SeesTheSameInAForwardPassAlone) {
  const auto found = [](const char* linear, const char* softmax, bool of_wrong_rank) {
    return sampled_after_wrong_exchange(linear, softmax, of_wrong_rank, false).first;
  };
  EXPECT_NE(found("zeco", nullptr, false).find("layer 1, o of the first tokens"), std::string::npos);
  EXPECT_NE(found("lasp2", nullptr, true).find("rank 2, layer 1"), std::string::npos);
  EXPECT_NE(found(nullptr, "all_gather_kv", true).find("of drawn queries"), std::string::npos);
  EXPECT_NE(found("whole", nullptr, true).find("rank 2, layer 1"), std::string::npos);
}

TEST(CompareSampledSteps, SeesAWrongGradientOfAWeightUnderSomeSeed) {
  std::int64_t wrong = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) wrong += sampled_after("d_weights_0", 1.01F, seed).wrong;
  EXPECT_GE(wrong, 3);
}

}  // namespace
}  // namespace baton
