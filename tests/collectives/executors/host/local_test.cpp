// SPDX-License-Identifier: Apache-2.0
// What the local executor tells of a round; its results are every_collective_test's.
#include <gtest/gtest.h>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"

namespace {

using namespace baton;

TEST(LocalExecutor, TellsWhenEachStepRan) {
  for (const char* name : {"all_scan", "two_shot", "ring_all_gather"}) {
    const auto schedules = build_all(find_collective(name), Shape{2, 4, 4, 2}, {.ranks = 5, .blocks = 3});
    const auto executor = find_executor("local").make(5);
    executor->prepare(schedules);
    expect_possible(schedules, executor->run_traced());
  }
}

TEST(LocalExecutor, ATracedRoundComputesWhatAnyRoundDoes) {
  const auto schedules = traced_ring(3);
  const auto executor = find_executor("local").make(3);
  executor->prepare(schedules);
  executor->write(0, {0, 0, 64}, std::vector<float>(64, 5));
  expect_possible(schedules, executor->run_traced());
  std::vector<float> into(64);
  executor->read(into, 1, schedules[1].buffer("into"));
  EXPECT_EQ(into, std::vector<float>(64, 7));
}

}  // namespace
