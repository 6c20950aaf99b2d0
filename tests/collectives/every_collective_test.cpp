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
#include "harness/experiment.hpp"
#include "harness/verify.hpp"
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
    auto schedules = build_all(*question_.collective, question_.shape, question_.ranks, question_.blocks,
                               question_.direction);
    ASSERT_NO_THROW(traffic_of(question_, question_.blocks, schedules));
    const std::string reason = executor->supports(schedules);
    if (!reason.empty()) {
      // Only a native may be at home on one executor alone.
      ASSERT_NE(implementation_of(schedules), "schedule") << reason;
      GTEST_SKIP() << reason;
    }
    executor->prepare(std::move(schedules));
    for (std::uint64_t seed : {1, 2}) expect_exact(*executor, team, seed);
  }

 private:
  void expect_exact(Executor& executor, const Team& team, std::uint64_t seed) const {
    const Subject subject{question_.collective->kind, question_.shape, question_.ranks, question_.direction,
                          seed};
    write_inputs(executor, subject);
    executor.synchronise();
    executor.run();
    const Comparison comparison = compare(executor, subject);
    EXPECT_EQ(team.sum(comparison.wrong), 0) << team.first(comparison.first);
  }

  const World& world_;
  Case question_;
};

Axes axes_of(const std::string& executor) {
  return {
      .collectives = collectives(),
      .executors = {executor},
      .ranks = executor == "local" ? std::vector{1, 2, 3, 4, 5, 7, 8, 16} : std::vector{1, 2, 3, 4},
      .directions = {Direction::forward, Direction::reverse},
      // d_k != d_v; one head; one row, which no rank can share with another.
      .shapes = {{2, 5, 3, 4}, {1, 8, 16, 3}, {3, 4, 4, 5}, {1, 1, 2, 1}},
      .blocks = {1, 3, 16, 100},  // 100: more blocks than rows
      .cadences = {Cadence::isolated},
  };
}

void register_tests(const World& world, const std::string& executor) {
  for (const Case& question : cases(axes_of(executor)))
    testing::RegisterTest(
        question.collective->name.c_str(), question.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&world, question]() -> testing::Test* { return new EveryCollective(world, question); });
}

}  // namespace

int main(int argc, char** argv) { return baton::launched_tests(argc, argv, register_tests); }
