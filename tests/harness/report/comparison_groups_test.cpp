// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "harness/report/record.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

Case scan_case(const char* name, int blocks = 1, int ranks = 4) {
  return {.workload = collective_workload(find_collective(name), Shape{}, Direction::forward),
          .executor = "local",
          .ranks = ranks,
          .blocks = blocks};
}

Case layer_case(Mode mode) {
  Layer layer;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  layer.mode = mode;
  return {.workload = operator_workload(find_method("zeco"), layer, GateDraw::layer),
          .executor = "local",
          .ranks = 4};
}

TEST(ComparisonGroups, RatiosReferToTheBaselineOfTheGroup) {
  ComparisonGroups groups("ring_scan");
  EXPECT_FALSE(groups.add(scan_case("two_shot"), {1}).ratio) << "the baseline has not run";
  EXPECT_EQ(groups.add(scan_case("ring_scan"), {2}).ratio->value, 1);
  EXPECT_EQ(groups.add(scan_case("two_shot"), {3, 3, 3}).ratio->value, 1.5);
  EXPECT_FALSE(groups.add(scan_case("two_shot", 1, 3), {3}).ratio) << "another number of ranks";
}

TEST(ComparisonGroups, ABaselineOfSeveralBlockCountsIsTheSameCountOrItsFastest) {
  ComparisonGroups groups("all_scan");
  groups.add(scan_case("all_scan", 1), {4});
  groups.add(scan_case("all_scan", 8), {2});
  EXPECT_EQ(groups.add(scan_case("hierarchical_scan_chain", 1), {2}).ratio->value, 0.5);
  EXPECT_EQ(groups.add(scan_case("ring_scan"), {3}).ratio->value, 1.5);
}

TEST(ComparisonGroups, TheHiddenShareNeedsAllThreeModes) {
  ComparisonGroups groups("");
  groups.add(layer_case(Mode::compute_only), {2});
  EXPECT_FALSE(groups.add(layer_case(Mode::overlapped), {3}).hidden);
  EXPECT_FALSE(groups.add(layer_case(Mode::exposed), {6}).hidden) << "of overlapped rows only";
  EXPECT_EQ(groups.add(layer_case(Mode::overlapped), {3}).hidden, 0.75);
  EXPECT_FALSE(groups.add(layer_case(Mode::overlapped), {3}).ratio);
}

}  // namespace
