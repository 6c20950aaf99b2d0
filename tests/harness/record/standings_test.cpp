// SPDX-License-Identifier: Apache-2.0
#include "harness/record/standings.hpp"

#include <gtest/gtest.h>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
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

Standing added(ComparisonGroups& groups, const Case& bench_case, const std::vector<double>& seconds) {
  groups.add(bench_case, seconds);
  return groups.standing(bench_case);
}

TEST(ComparisonGroups, RatiosReferToTheBaselineOfTheGroup) {
  ComparisonGroups groups("ring_scan");
  EXPECT_FALSE(added(groups, scan_case("two_shot"), {1}).ratio) << "the baseline has not run";
  EXPECT_EQ(added(groups, scan_case("ring_scan"), {2}).ratio->value, 1);
  EXPECT_EQ(added(groups, scan_case("two_shot"), {3, 3, 3}).ratio->value, 1.5);
  EXPECT_FALSE(added(groups, scan_case("two_shot", 1, 3), {3}).ratio) << "another number of ranks";
}

TEST(ComparisonGroups, ABaselineOfSeveralBlockCountsIsTheSameCountOrItsFastest) {
  ComparisonGroups groups("all_scan");
  groups.add(scan_case("all_scan", 1), {4});
  groups.add(scan_case("all_scan", 8), {2});
  EXPECT_EQ(added(groups, scan_case("hierarchical_scan_chain", 1), {2}).ratio->value, 0.5);
  EXPECT_EQ(added(groups, scan_case("ring_scan"), {3}).ratio->value, 1.5);
}

TEST(ComparisonGroups, TheHiddenShareNeedsAllThreeModes) {
  ComparisonGroups groups("");
  groups.add(layer_case(Mode::compute_only), {2});
  EXPECT_FALSE(added(groups, layer_case(Mode::overlapped), {3}).hidden);
  EXPECT_FALSE(added(groups, layer_case(Mode::exposed), {6}).hidden) << "of overlapped rows only";
  EXPECT_EQ(added(groups, layer_case(Mode::overlapped), {3}).hidden, 0.75);
  EXPECT_FALSE(added(groups, layer_case(Mode::overlapped), {3}).ratio);
}

TEST(ComparisonGroups, ACaseThatWasNotAddedStandsNowhere) {
  ComparisonGroups groups("ring_scan");
  groups.add(scan_case("ring_scan"), {2});
  EXPECT_FALSE(groups.standing(scan_case("two_shot")).ratio);
  EXPECT_EQ(groups.seconds(scan_case("two_shot")), nullptr);
  EXPECT_EQ(*groups.seconds(scan_case("ring_scan")), std::vector<double>{2});
}

TEST(OverLaunches, RatiosAreFormedLaunchByLaunch) {
  EXPECT_FALSE(over_launches({{1, 1}}, {{}}));
  const Ratio twice{2, {}}, half{0.5, {}};
  const auto over = over_launches({{1, 1, 7}, {4, 4, 4}}, {{twice, {}, {}}, {half, {}, {}}});
  EXPECT_EQ(over->launches, 2);
  EXPECT_DOUBLE_EQ(over->summary.median, 2) << "the geometric mean of the launches' medians";
  EXPECT_EQ(over->summary.max, 7) << "of all rounds";
  EXPECT_DOUBLE_EQ(over->standing.ratio->value, 1);
  EXPECT_LT(over->standing.ratio->ci95[0], 0.01) << "two launches say little";
}

TEST(OverLaunches, TheHiddenShareNeedsLaunchesThatTellWhatWaitingCosts) {
  const auto hidden = [](double first_exposed, double second_exposed) {
    const ModeTimes first{1.25, first_exposed, 1}, second{2.5, second_exposed, 2};
    return over_launches({{1}, {1}}, {{{}, {}, first}, {{}, {}, second}})->standing.hidden;
  };
  EXPECT_DOUBLE_EQ(hidden(2, 4).value(), 0.75)
      << "the sums of both launches, since seconds are what is hidden";
  EXPECT_FALSE(hidden(1.1, 4)) << "1.1 and 2 times as long: another launch may say 0.9";
  EXPECT_FALSE(hidden(0.9, 1.8)) << "waiting took less than nothing";
}

TEST(OverLaunches, ALaunchWithoutTheBaselineHasNoRatio) {
  const auto over = over_launches({{1}, {1}}, {{}, {Ratio{1, {}}, {}, {}}});
  EXPECT_FALSE(over->standing.ratio);
  EXPECT_FALSE(over->standing.hidden);
}

}  // namespace
