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
  return {.workload = operator_workload(find_method("zeco"), layer, {GateDraw::layer}),
          .executor = "local",
          .ranks = 4};
}

TEST(Standings, RatiosReferToTheBaselineOfTheGroup) {
  const std::vector<Case> cases{scan_case("two_shot"), scan_case("ring_scan"), scan_case("two_shot", 1, 3)};
  Standings standings(cases, "ring_scan");
  standings.add(1, 0, {3, 3, 3});
  EXPECT_FALSE(standings.standing(1, 0).ratio) << "the baseline has not run";
  standings.add(1, 1, {2});
  standings.add(1, 2, {3});
  EXPECT_EQ(standings.standing(1, 0).ratio->value, 1.5);
  EXPECT_EQ(standings.standing(1, 1).ratio->value, 1);
  EXPECT_FALSE(standings.standing(1, 2).ratio) << "another number of ranks";
}

TEST(Standings, ABaselineOfSeveralBlockCountsIsTheSameCountOrItsFastest) {
  const std::vector<Case> cases{scan_case("all_scan", 1), scan_case("all_scan", 8),
                                scan_case("hierarchical_scan_chain", 1), scan_case("ring_scan")};
  Standings standings(cases, "all_scan");
  standings.add(1, 0, {4});
  standings.add(1, 1, {2});
  standings.add(1, 2, {2});
  standings.add(1, 3, {3});
  EXPECT_EQ(standings.standing(1, 2).ratio->value, 0.5);
  EXPECT_EQ(standings.standing(1, 3).ratio->value, 1.5);
}

TEST(Standings, TheHiddenShareNeedsAllThreeModes) {
  const std::vector<Case> cases{layer_case(Mode::compute_only), layer_case(Mode::overlapped),
                                layer_case(Mode::exposed)};
  Standings standings(cases, "");
  standings.add(1, 0, {2});
  standings.add(1, 1, {3});
  EXPECT_FALSE(standings.standing(1, 1).hidden);
  standings.add(1, 2, {6});
  EXPECT_EQ(standings.standing(1, 1).hidden, 0.75);
  EXPECT_FALSE(standings.standing(1, 2).hidden) << "of overlapped rows only";
  EXPECT_FALSE(standings.standing(1, 1).ratio);
}

TEST(Standings, ACaseCountsOnceInALaunchAndNowhereElse) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Standings standings(cases, "ring_scan");
  standings.add(1, 0, {2});
  standings.add(1, 0, {9});
  standings.add(2, 1, {4});
  EXPECT_FALSE(standings.standing(1, 1).ratio) << "it was not timed there";
  EXPECT_FALSE(standings.standing(2, 1).ratio) << "the baseline was not";
  EXPECT_FALSE(standings.over_launches(0)) << "one launch";
  EXPECT_FALSE(standings.ratio(0, 1)) << "no launch has both";
  standings.add(2, 0, {2});
  EXPECT_EQ(standings.over_launches(0)->summary.median, 2);
  EXPECT_EQ(standings.ratio(1, 0)->value, 2);
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
