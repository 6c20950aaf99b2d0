// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/case.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using namespace baton;

Axes axes_of(std::vector<std::string> names) {
  Axes axes{
      .executors = {"local"}, .ranks = {2, 3}, .blocks = {1, 4}, .timing_modes = {TimingMode::isolated}};
  axes.comparison_groups.emplace_back();
  for (const auto& name : names)
    axes.comparison_groups[0].push_back(
        collective_workload(find_collective(name), Shape{}, Direction::forward));
  return axes;
}

TEST(Cases, BlocksVaryOnlyWhereTheyAreCut) {
  EXPECT_EQ(cases(axes_of({"all_scan"})).size(), 2u * 2);
  EXPECT_EQ(cases(axes_of({"ring_scan"})).size(), 2u);
}

TEST(Cases, CyclesRepeatTheSweepUnderOtherNames) {
  Axes axes = axes_of({"ring_scan"});
  axes.cycles = 3;
  const auto all = cases(axes);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_NE(all[0].name(), all[2].name());
  EXPECT_NE(all[0].comparison_group(), all[2].comparison_group());
}

TEST(Cases, NodesStandInTheNameOnlyWhereTheyAreNamed) {
  Axes axes = axes_of({"ring_scan"});
  EXPECT_EQ(cases(axes)[0].name().find("ranks_a_node"), std::string::npos);
  axes.ranks_a_node = 2;
  const Case bench_case = cases(axes)[0];
  EXPECT_NE(bench_case.comparison_group().find("ranks:2/ranks_a_node:2/"), std::string::npos)
      << bench_case.comparison_group();
  EXPECT_EQ(bench_case.split(5).blocks, 5);
  EXPECT_EQ(bench_case.split(5).ranks_a_node, 2);
}

TEST(Cases, RanksThatShareAGpuAreAContestOfTheirOwn) {
  Case bench_case = cases(axes_of({"all_scan"}))[0];
  const std::string apart = bench_case.comparison_group();
  bench_case.ranks_a_gpu = 2;
  EXPECT_EQ(apart.find("ranks_per_gpu"), std::string::npos);
  EXPECT_NE(bench_case.comparison_group().find("/ranks_per_gpu:2/"), std::string::npos);
}

TEST(Cases, TheBaselineLeadsEveryContest) {
  Axes axes = axes_of({"all_scan", "two_shot", "ring_scan"});
  axes.baseline = "ring_scan";
  std::set<std::string> begun;
  for (const Case& c : cases(axes)) {
    const bool leads = begun.insert(c.comparison_group()).second;
    EXPECT_EQ(c.workload->name() == "ring_scan", leads);
  }
}

TEST(Cases, NamesAreDistinctAndContestsAreOfOneKind) {
  std::set<std::string> names;
  for (const Case& c : cases(axes_of({"all_scan", "ring_scan", "ring_all_gather"})))
    EXPECT_TRUE(names.insert(c.name()).second) << c.name();
  const auto all = cases(axes_of({"ring_scan", "ring_all_gather"}));
  EXPECT_NE(all[0].comparison_group(), all[1].comparison_group());
}

}  // namespace
