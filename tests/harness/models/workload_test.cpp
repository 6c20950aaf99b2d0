// SPDX-License-Identifier: Apache-2.0
// Models as workloads: their lines, what a line is compared with, and the small model in place of a
// large one.
#include "harness/models/workload.hpp"

#include <gtest/gtest.h>

#include "harness/report/record.hpp"

namespace baton {
namespace {

std::shared_ptr<const Workload> workload(const char* method, Mode mode) {
  Stack stack;
  stack.linear = &find_method(method);
  stack.tokens = 256;
  stack.layer.mode = mode;
  return model_workload(stack, 0);
}

Case case_of(const char* method, Mode mode) {
  return {.workload = workload(method, mode), .executor = "local", .ranks = 2};
}

TEST(ModelWorkload, HasALineOfItsMethodAndMode) {
  EXPECT_EQ(workload("local", Mode::overlapped)->variant(), "dp");
  EXPECT_EQ(workload("zeco", Mode::compute_only)->variant(), "split");
  EXPECT_EQ(workload("zeco", Mode::overlapped)->variant(), "full");
}

TEST(ModelWorkload, TheLinesOfAllMethodsAreOneComparisonGroup) {
  const std::string group = case_of("local", Mode::overlapped).comparison_group();
  EXPECT_EQ(case_of("zeco", Mode::compute_only).comparison_group(), group);
  EXPECT_EQ(case_of("lasp2", Mode::overlapped).contest(), case_of("local", Mode::overlapped).contest());
}

TEST(ModelWorkload, WhatIsExposedIsFullLessSplitOfTheSameMethod) {
  ComparisonGroups groups("local");
  groups.add(case_of("local", Mode::overlapped), {1, 1, 1});
  groups.add(case_of("lasp2", Mode::compute_only), {9, 9, 9});
  groups.add(case_of("zeco", Mode::overlapped), {5, 5, 5});
  EXPECT_FALSE(groups.standing(case_of("zeco", Mode::overlapped)).exposed_seconds) << "no line split yet";
  groups.add(case_of("zeco", Mode::compute_only), {3, 3, 3});
  const Standing standing = groups.standing(case_of("zeco", Mode::overlapped));
  EXPECT_EQ(standing.exposed_seconds, 2);
  EXPECT_EQ(standing.ratio->value, 5);
  EXPECT_FALSE(groups.standing(case_of("zeco", Mode::compute_only)).exposed_seconds);
}

TEST(ModelWorkload, IsVerifiedSmallWhereItIsSimulated) {
  const auto small = workload("ulysses", Mode::overlapped)->reduced(8);
  EXPECT_LE(small->describe().tokens, 32);
  EXPECT_EQ(small->describe().model->layers, 2);
  EXPECT_EQ(small->variant(), "full");
}

}  // namespace
}  // namespace baton
