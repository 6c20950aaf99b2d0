// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/case.hpp"

#include <gtest/gtest.h>

#include <set>

#include "harness/cases/collective_workload.hpp"

namespace {

using namespace baton;

Axes axes_of(std::vector<std::string> names) {
  Axes axes{.executors = {"local"}, .ranks = {2, 3}, .blocks = {1, 4}, .cadences = {Cadence::isolated}};
  axes.contests.emplace_back();
  for (const auto& name : names)
    axes.contests[0].push_back(collective_workload(find_collective(name), Shape{}, Direction::forward));
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
  EXPECT_NE(all[0].contest(), all[2].contest());
}

TEST(Cases, NodesStandInTheNameOnlyWhereTheyAreNamed) {
  Axes axes = axes_of({"ring_scan"});
  EXPECT_EQ(cases(axes)[0].name().find("ranks_a_node"), std::string::npos);
  axes.ranks_a_node = 2;
  const Case question = cases(axes)[0];
  EXPECT_NE(question.contest().find("ranks:2/ranks_a_node:2/"), std::string::npos) << question.contest();
  EXPECT_EQ(question.split(5).blocks, 5);
  EXPECT_EQ(question.split(5).ranks_a_node, 2);
}

TEST(Cases, TheBaselineLeadsEveryContest) {
  Axes axes = axes_of({"all_scan", "two_shot", "ring_scan"});
  axes.baseline = "ring_scan";
  std::set<std::string> begun;
  for (const Case& c : cases(axes)) {
    const bool leads = begun.insert(c.contest()).second;
    EXPECT_EQ(c.workload->name() == "ring_scan", leads);
  }
}

TEST(Cases, NamesAreDistinctAndContestsAreOfOneKind) {
  std::set<std::string> names;
  for (const Case& c : cases(axes_of({"all_scan", "ring_scan", "ring_all_gather"})))
    EXPECT_TRUE(names.insert(c.name()).second) << c.name();
  const auto all = cases(axes_of({"ring_scan", "ring_all_gather"}));
  EXPECT_NE(all[0].contest(), all[1].contest());
}

}  // namespace
