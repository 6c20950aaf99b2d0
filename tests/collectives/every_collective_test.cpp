// SPDX-License-Identifier: Apache-2.0
// Every registered collective, those of tomorrow included, against the oracle of its kind: in both
// directions, at many rank counts, nodes, shapes and block counts, zero wrong elements (on a wire
// that rounds: zero outside what rounding can do), the claim equal to the count.
//
//   every_collective_test local|local_bf16|mpi [GoogleTest's flags]
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/cases/sweep.hpp"
#include "harness/cases/verify.hpp"
#include "tests/launched_tests.hpp"

namespace {

using namespace baton;

/// One case on one executor. All processes of the world run all tests; those without a rank in it
/// only keep step.
class EveryCollective : public testing::Test {
 public:
  EveryCollective(ExecutorsUnderTest& executors, Case bench_case)
      : executors_(executors), case_(std::move(bench_case)) {}

  void TestBody() override {
    if (!executors_.have(case_.ranks)) GTEST_SKIP() << "too few ranks were launched";
    const Team& team = executors_.team(case_.ranks);
    if (!team.is_member()) return;
    if (const Refusal refusal = case_.workload->unsupported(case_.ranks)) GTEST_SKIP() << refusal.reason();
    Executor& executor = executors_.on(case_.ranks);
    const auto schedules = case_.workload->build(case_.split(case_.blocks));
    ASSERT_NO_THROW(cost_of(case_, case_.blocks, schedules));
    if (const Refusal refusal = executor.unsupported(schedules)) {
      // Only a native may be at home on one executor alone.
      ASSERT_NE(implementation_of(schedules), "schedule") << refusal.reason();
      GTEST_SKIP() << refusal.reason();
    }
    executor.prepare(schedules);
    Oracles oracles(team);
    for (std::uint64_t seed : {1, 2}) {
      const Comparison comparison = case_.workload->verify(executor, schedules, seed, oracles);
      EXPECT_EQ(team.sum(comparison.wrong), 0) << team.first(comparison.first);
    }
  }

 private:
  ExecutorsUnderTest& executors_;
  Case case_;
};

/// Every collective under every shape and direction that it has, on these numbers of ranks.
Axes axes_of(const std::string& executor, const std::vector<int>& ranks, int ranks_per_node,
             const std::vector<Shape>& shapes) {
  Axes axes{.executors = {executor}};
  for (const int count : ranks) axes.points.push_back({.ranks = count, .ranks_per_node = ranks_per_node});
  for (const Shape& shape : shapes)
    for (Direction direction : {Direction::forward, Direction::reverse})
      for (const Collective* collective : collectives())
        if (direction == Direction::forward || collective->kind == Kind::exclusive_scan)
          axes.comparison_groups.push_back({collective_workload(*collective, shape, direction)});
  return axes;
}

/// Scans and gathers of maps that are not diagonal. d_k != d_v; one head; as many heads as ranks;
/// more values than keys; matrices of one element; rows of 64 and 128, for which GPUs have tensor
/// cores, also in blocks that are no whole tiles.
void add_other_maps(const std::string& executor, std::vector<Case>& all) {
  const bool is_local = !find_executor(executor).process_per_rank;
  std::vector<Shape> shapes;
  for (MapKind map : {MapKind::scalar, MapKind::affine})
    for (const auto& [heads, d_k, d_v] : {std::array{3, 5, 4}, {1, 8, 16}, {16, 6, 3}, {2, 1, 2}})
      shapes.push_back({heads, d_k, d_v, 1, map});
  Axes axes = axes_of(executor, is_local ? std::vector{1, 2, 3, 4, 5, 6, 7, 8, 16} : std::vector{1, 2, 3, 4},
                      0, shapes);
  axes.blocks = {1, 3, 16};
  Axes nodes = axes_of(executor, is_local ? std::vector{5, 8, 10, 13, 16} : std::vector{4}, 3,
                       {{4, 6, 3, 1, MapKind::affine}, {4, 6, 3, 1, MapKind::scalar}});
  nodes.blocks = {1, 16};
  Axes wide =
      axes_of(executor, {2, 4}, 0, {{4, 64, 96, 1, MapKind::affine}, {3, 128, 48, 1, MapKind::affine}});
  wide.blocks = {1, 7, 16};
  for (const Axes& some : {axes, nodes, wide})
    for (const Case& bench_case : cases(some))
      if (!moves_tokens(find_collective(bench_case.workload->name()).kind)) all.push_back(bench_case);
}

std::vector<Case> all_cases(const std::string& executor) {
  const bool is_local = !find_executor(executor).process_per_rank;
  // d_k != d_v; one head; one row, which no rank can share with another.
  Axes axes = axes_of(executor, is_local ? std::vector{1, 2, 3, 4, 5, 7, 8, 16} : std::vector{1, 2, 3, 4}, 0,
                      {{2, 5, 3, 4}, {1, 8, 16, 3}, {3, 4, 4, 5}, {1, 1, 2, 1}});
  axes.blocks = {1, 3, 16, 100};  // 100: more blocks than rows
  std::vector<Case> all = cases(axes);
  // More than 2048 rows, messages of more than 256 KiB in one block, and 16 full blocks.
  Axes large = axes_of(executor, {2, 3}, 0, {{17, 128, 32, 1}});
  large.blocks = {1, 16};
  for (const Case& bench_case : cases(large)) all.push_back(bench_case);
  // Nodes of one rank and of several, most last ones partly filled, down to one rank; more ranks
  // than rows.
  for (int ranks_per_node : {1, 2, 3, 4}) {
    Axes nodes = axes_of(executor, is_local ? std::vector{2, 3, 5, 7, 8, 10, 13, 16} : std::vector{3, 4},
                         ranks_per_node, {{2, 5, 3, 4}, {1, 1, 2, 1}});
    nodes.blocks = {1, 16};
    for (const Case& bench_case : cases(nodes)) all.push_back(bench_case);
  }
  add_other_maps(executor, all);
  return all;
}

void register_tests(ExecutorsUnderTest& executors) {
  for (const Case& bench_case : all_cases(executors.name()))
    testing::RegisterTest(
        bench_case.workload->name().c_str(), bench_case.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&executors, bench_case]() -> testing::Test* { return new EveryCollective(executors, bench_case); });
}

}  // namespace

int main(int argc, char** argv) { return baton::launched_tests(argc, argv, register_tests); }
