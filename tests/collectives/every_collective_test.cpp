// SPDX-License-Identifier: Apache-2.0
// Every registered collective, those of tomorrow included, against the oracle of its kind: in both directions, at many
// rank counts, shapes and block counts, zero wrong elements, the claim equal to the count.
//
//   every_collective_test local|mpi [GoogleTest's flags]
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/case.hpp"
#include "harness/collective_workload.hpp"
#include "harness/traffic.hpp"
#include "tests/launched_tests.hpp"

namespace {

using namespace baton;

/// One case on one executor. All processes of the world run all tests; those without a rank in it only keep step.
class EveryCollective : public testing::Test {
 public:
  EveryCollective(const World& world, Case question) : world_(world), question_(std::move(question)) {}

  void TestBody() override {
    const ExecutorEntry& entry = find_executor(question_.executor);
    const Team team = world_.team(entry.process_a_rank ? question_.ranks : 1);
    if (!team.is_member()) return;
    const auto executor = entry.make(question_.ranks);
    auto schedules = question_.workload->build(question_.ranks, question_.blocks);
    ASSERT_NO_THROW(traffic_of(question_, question_.blocks, schedules));
    const std::string reason = executor->supports(schedules);
    if (!reason.empty()) {
      // Only a native may be at home on one executor alone.
      ASSERT_NE(implementation_of(schedules), "schedule") << reason;
      GTEST_SKIP() << reason;
    }
    executor->prepare(std::move(schedules));
    for (std::uint64_t seed : {1, 2}) {
      const Comparison comparison =
          question_.workload->verify(*executor, question_.ranks, question_.blocks, seed);
      EXPECT_EQ(team.sum(comparison.wrong), 0) << team.first(comparison.first);
    }
  }

 private:
  const World& world_;
  Case question_;
};

Axes axes_of(const std::string& executor) {
  Axes axes{.executors = {executor},
            .ranks = executor == "local" ? std::vector{1, 2, 3, 4, 5, 7, 8, 16} : std::vector{1, 2, 3, 4},
            .blocks = {1, 3, 16, 100},  // 100: more blocks than rows
            .cadences = {Cadence::isolated}};
  // d_k != d_v; one head; one row, which no rank can share with another.
  for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{1, 8, 16, 3}, Shape{3, 4, 4, 5}, Shape{1, 1, 2, 1}})
    for (Direction direction : {Direction::forward, Direction::reverse})
      for (const Collective* collective : collectives())
        if (direction == Direction::forward || collective->kind == Kind::exclusive_scan)
          axes.contests.push_back({collective_workload(*collective, shape, direction)});
  return axes;
}

void register_tests(const World& world, const std::string& executor) {
  for (const Case& question : cases(axes_of(executor)))
    testing::RegisterTest(
        question.workload->name().c_str(), question.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&world, question]() -> testing::Test* { return new EveryCollective(world, question); });
}

}  // namespace

int main(int argc, char** argv) { return baton::launched_tests(argc, argv, register_tests); }
