// SPDX-License-Identifier: Apache-2.0
// Models as workloads: their lines, what a line is compared with, and the small model in place of a
// large one.
#include "harness/models/workload.hpp"

#include <gtest/gtest.h>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/record/comparisons.hpp"

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
  return {.workload = workload(method, mode), .backend = &find_backend("local"), .ranks = 2};
}

TEST(ModelWorkload, HasALineOfItsMethodAndMode) {
  EXPECT_EQ(workload("local", Mode::overlapped)->variant_name(), "dp");
  EXPECT_EQ(workload("zeco", Mode::compute_only)->variant_name(), "split");
  EXPECT_EQ(workload("zeco", Mode::overlapped)->variant_name(), "full");
}

TEST(ModelWorkload, TheLinesOfAllMethodsAreOneComparisonGroup) {
  const std::string group = case_of("local", Mode::overlapped).comparison_group();
  EXPECT_EQ(case_of("zeco", Mode::compute_only).comparison_group(), group);
  EXPECT_EQ(case_of("lasp2", Mode::overlapped).contest(), case_of("local", Mode::overlapped).contest());
}

TEST(ModelWorkload, WhatIsExposedIsFullLessSplitOfTheSameMethod) {
  const std::vector<Case> cases{case_of("local", Mode::overlapped), case_of("lasp2", Mode::compute_only),
                                case_of("zeco", Mode::overlapped), case_of("zeco", Mode::compute_only)};
  Comparisons comparisons(cases, "local");
  comparisons.add(1, 0, {1, 1, 1});
  comparisons.add(1, 1, {9, 9, 9});
  comparisons.add(1, 2, {5, 5, 5});
  EXPECT_FALSE(comparisons.in_launch(1, 2).exposed_seconds) << "no line split yet";
  comparisons.add(1, 3, {3, 3, 3});
  EXPECT_EQ(comparisons.in_launch(1, 2).exposed_seconds, 2);
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio->value, 5);
  EXPECT_FALSE(comparisons.in_launch(1, 3).exposed_seconds);
}

TEST(ModelWorkload, ClaimsTheBytesOfItsExchangesAndOfItsShards) {
  const std::vector<const SpMethod*> methods{&find_method("local"),   &find_method("zeco"),
                                             &find_method("lasp1"),   &find_method("lasp2"),
                                             &find_method("ulysses"), &whole_sequence()};
  for (const SpMethod* method : methods)
    for (const int layers : {1, 2, 3})
      for (const int what : {0, 1, 2, 3})
        for (const int ranks : {1, 2, 4}) {
          const bool shards = what % 2 == 1;
          Stack stack;
          stack.has_backward = what < 2;
          stack.shape.layers.assign(layers, Attention::linear);
          stack.linear = method;
          stack.tokens = 64;
          stack.shards_weights = shards;
          if (stack.runs_whole() && stack.has_backward) continue;
          const auto workload = model_workload(stack, 0);
          const Split split{.ranks = ranks, .blocks = 2};
          const auto claim = workload->claim(split);
          ASSERT_TRUE(claim) << method->name;
          EXPECT_EQ(claim->sent_bytes, check(method->name, workload->build(split)).busiest_sent_bytes())
              << method->name << ", " << layers << " layers, " << ranks << " ranks"
              << (shards ? ", sharded" : "");
          EXPECT_LT(claim->hops, 0) << "hops are counted and not claimed";
        }
}

TEST(ModelWorkload, AWrongClaimOfBytesIsRefused) {
  Case model = case_of("zeco", Mode::overlapped);
  const Cost right{.sent_bytes = model.workload->claim(model.split(1))->sent_bytes, .hops = 5};
  EXPECT_NO_THROW(require_claim(model, 1, right));
  EXPECT_THROW(require_claim(model, 1, {right.sent_bytes + 4, 5}), ScheduleError);
}

TEST(ModelWorkload, LayersOfTwoKindsClaimNothing) {
  Stack stack;
  stack.shape.layers = {Attention::linear, Attention::softmax};
  stack.linear = &find_method("zeco");
  stack.softmax = &find_method("ring_attention_softmax");
  stack.tokens = 64;
  EXPECT_FALSE(model_workload(stack, 0)->claim({.ranks = 2}));
}

TEST(ModelWorkload, ASequenceIsSharedEqually) {
  Stack stack;
  stack.linear = &find_method("zeco");
  stack.tokens = 512;
  const auto whole = model_workload(stack, 0, 512);
  EXPECT_EQ(whole->sized(4)->axes().whole("tokens"), 128);
  EXPECT_EQ(whole->sized(4)->shape_name(), whole->shape_name()) << "which names the sequence";
  EXPECT_FALSE(whole->sized(4)->unsupported(4));
  EXPECT_EQ(whole->sized(3)->unsupported(3).reason(),
            "512 tokens have no 3 equal shares, and models pad none");
  EXPECT_EQ(model_workload(stack, 0)->sized(4), nullptr);
}

TEST(ModelWorkload, APassIsPartOfTheNameUnlessItIsBoth) {
  Stack stack;
  stack.linear = &find_method("zeco");
  stack.tokens = 256;
  const auto both = model_workload(stack, 0);
  stack.has_backward = false;
  const auto forward = model_workload(stack, 0);
  EXPECT_NE(forward->shape_name(), both->shape_name());
  EXPECT_EQ(both->shape_name().find("both"), std::string::npos);
  EXPECT_EQ(3 * forward->axes().real("flops_per_token"), both->axes().real("flops_per_token"));
}

TEST(ModelWorkload, IsVerifiedSmallWhereItIsSimulated) {
  const auto small = workload("ulysses", Mode::overlapped)->reduced(8);
  EXPECT_LE(small->axes().whole("tokens"), 32);
  EXPECT_EQ(small->axes().whole("layers"), 2);
  EXPECT_EQ(small->variant_name(), "full");
}

}  // namespace
}  // namespace baton
