// SPDX-License-Identifier: Apache-2.0
// The comparison of models sees a missing exchange, one wrong gradient and an output that nobody
// wrote.
#include <gtest/gtest.h>

#include "harness/models/workload.hpp"
#include "models/stack.hpp"

namespace baton {
namespace {

constexpr int ranks = 2;

/// A model that has run on `local`, to be compared with what it should have been.
struct FinishedRun {
  Stack stack;
  std::unique_ptr<Executor> executor = find_executor("local").make(ranks);
  std::vector<Schedule> schedules;

  explicit FinishedRun(Mode mode) {
    stack.linear = &find_method("zeco");
    stack.tokens = 24;
    stack.shape.chunk = 8;
    stack.layer.mode = mode;
    for (int rank = 0; rank < ranks; ++rank) schedules.push_back(build(stack, rank, ranks));
    executor->prepare(schedules);
    write_model(*executor, schedules, {stack, ranks, 1});
    executor->run();
  }

  Comparison compared_with(Mode mode) const {
    Stack other = stack;
    other.layer.mode = mode;
    return compare_model(*executor, schedules, ModelOracle({other, ranks, 1}));
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

}  // namespace
}  // namespace baton
