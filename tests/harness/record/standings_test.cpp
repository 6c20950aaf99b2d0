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

Case layer_case(Mode mode, const char* method = "zeco", int blocks = 1, const char* scan = "") {
  Layer layer;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  layer.mode = mode;
  layer.scan = scan;
  return {.workload = operator_workload(find_method(method), layer, {GateDraw::layer}),
          .executor = "local",
          .ranks = 4,
          .blocks = blocks};
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

TEST(Standings, AnOverlappedRowIsComparedWithOverlappedRowsOfTheBaseline) {
  const auto all = {Mode::compute_only, Mode::exposed, Mode::overlapped};
  std::vector<Case> cases;
  for (const char* method : {"lasp2", "zeco"})
    for (const Mode mode : all) cases.push_back(layer_case(mode, method));
  cases.push_back(layer_case(Mode::overlapped, "local"));
  Standings standings(cases, "lasp2");
  for (int index = 0; index < 7; ++index)
    standings.add(1, index, {std::vector{1., 4., 3., 2., 8., 6., 9.}[index]});
  for (const int index : {3, 4, 5}) EXPECT_EQ(standings.standing(1, index).ratio->value, 2) << index;
  EXPECT_EQ(standings.standing(1, 5).ratio_to, "lasp2 overlapped");
  EXPECT_EQ(standings.standing(1, 3).ratio_to, "lasp2 compute_only");
  EXPECT_EQ(standings.standing(1, 0).ratio->value, 1) << "the baseline's own rows take as long as themselves";
  EXPECT_EQ(standings.standing(1, 1).ratio->value, 1);
  EXPECT_EQ(standings.standing(1, 6).ratio->value, 3) << "a layer without an exchange, as published";
  EXPECT_EQ(standings.standing(1, 6).ratio_to, "lasp2 overlapped");
}

TEST(Standings, AModeThatTheBaselineDidNotTimeHasNoRatio) {
  const std::vector<Case> cases{layer_case(Mode::compute_only, "lasp2"),
                                layer_case(Mode::overlapped, "lasp2"), layer_case(Mode::overlapped, "zeco")};
  Standings standings(cases, "lasp2");
  standings.add(1, 0, {1});
  standings.add(1, 2, {4});
  EXPECT_FALSE(standings.standing(1, 2).ratio) << "the baseline's overlapped row failed";
  standings.add(1, 1, {2});
  EXPECT_EQ(standings.standing(1, 2).ratio->value, 2);
}

TEST(Standings, ABaselineWithoutModesStandsBesideThemAll) {
  const std::vector<Case> cases{layer_case(Mode::overlapped, "local"), layer_case(Mode::exposed),
                                layer_case(Mode::overlapped)};
  Standings standings(cases, "local");
  for (int index = 0; index < 3; ++index) standings.add(1, index, {1.0 + index});
  EXPECT_EQ(standings.standing(1, 1).ratio->value, 2);
  EXPECT_EQ(standings.standing(1, 2).ratio->value, 3);
  EXPECT_EQ(standings.standing(1, 2).ratio_to, "local");
}

TEST(Standings, EachCountOfBlocksHasItsOwnModes) {
  std::vector<Case> cases{layer_case(Mode::compute_only)};
  for (const int blocks : {1, 8})
    for (const Mode mode : {Mode::exposed, Mode::overlapped})
      cases.push_back(layer_case(mode, "zeco", blocks));
  Standings standings(cases, "zeco");
  const std::vector<double> seconds{2, 6, 3, 10, 4};  // compute_only; exposed, overlapped of 1 and of 8
  for (int index = 0; index < 5; ++index) standings.add(1, index, {seconds[index]});
  EXPECT_EQ(standings.standing(1, 2).hidden, 0.75);
  EXPECT_EQ(standings.standing(1, 4).hidden, 0.75);
  EXPECT_EQ(standings.standing(1, 4).ratio_to, "zeco overlapped, 8 blocks");
}

TEST(Standings, EachScanHasItsOwnModes) {
  std::vector<Case> cases{layer_case(Mode::compute_only)};
  for (const char* scan : {"all_scan", "ring_scan"})
    for (const Mode mode : {Mode::exposed, Mode::overlapped})
      cases.push_back(layer_case(mode, "zeco", 1, scan));
  Standings standings(cases, "");
  const std::vector<double> seconds{2, 6, 3, 10, 4};  // compute_only; exposed, overlapped of each scan
  for (int index = 0; index < 5; ++index) standings.add(1, index, {seconds[index]});
  EXPECT_EQ(standings.standing(1, 2).hidden, 0.75);
  EXPECT_EQ(standings.standing(1, 4).hidden, 0.75);
}

TEST(Standings, TheFastestOfTheBaselinesBlockCountsIsTheFastestOfAllLaunches) {
  const std::vector<Case> cases{scan_case("all_scan", 1), scan_case("all_scan", 8), scan_case("ring_scan")};
  Standings standings(cases, "all_scan");
  for (const int launch : {1, 2}) {
    standings.add(launch, 0, {launch == 1 ? 2.0 : 8.0});
    standings.add(launch, 1, {3});
    standings.add(launch, 2, {6});
  }
  EXPECT_EQ(standings.standing(1, 2).ratio_to, "all_scan, 1 block");
  const Standing over = standings.over_launches(2)->standing;
  EXPECT_EQ(over.ratio_to, "all_scan, 8 blocks");
  EXPECT_NEAR(over.ratio->value, 2, 1e-12) << "one row in both launches";
}

TEST(OverLaunches, RatiosAreFormedLaunchByLaunch) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Standings standings(cases, "ring_scan");
  standings.add(1, 0, {0.5});
  standings.add(1, 1, {1, 1, 7});
  EXPECT_FALSE(standings.over_launches(1)) << "one launch";
  standings.add(2, 0, {8});
  standings.add(2, 1, {4, 4, 4});
  const auto over = standings.over_launches(1);
  EXPECT_EQ(over->launches, 2);
  EXPECT_DOUBLE_EQ(over->summary.median, 2) << "the geometric mean of the launches' medians";
  EXPECT_EQ(over->summary.max, 7) << "of all rounds";
  EXPECT_DOUBLE_EQ(over->standing.ratio->value, 1);
  EXPECT_LT(over->standing.ratio->ci95[0], 0.01) << "two launches say little";
}

TEST(OverLaunches, LaunchesThatAgreeExactlyStillSpread) {
  std::vector<Case> cases{scan_case("ring_scan"), scan_case("ring_scan")};
  cases[1].executor = "simulator";
  Standings standings(cases, "");
  for (const int launch : {1, 2, 3})
    for (const int index : {0, 1}) standings.add(launch, index, {2});
  EXPECT_LT(standings.over_launches(0)->summary.ci95[0], 2);
  EXPECT_EQ(standings.over_launches(1)->summary.ci95, (Interval{2, 2})) << "simulated times are exact";
}

TEST(OverLaunches, TheHiddenShareNeedsLaunchesThatTellWhatWaitingCosts) {
  const auto hidden = [](double first_exposed, double second_exposed) {
    const std::vector<Case> cases{layer_case(Mode::compute_only), layer_case(Mode::exposed),
                                  layer_case(Mode::overlapped)};
    Standings standings(cases, "");
    for (const int launch : {1, 2}) {
      standings.add(launch, 0, {1.0 * launch});
      standings.add(launch, 1, {launch == 1 ? first_exposed : second_exposed});
      standings.add(launch, 2, {1.25 * launch});
    }
    return standings.over_launches(2)->standing.hidden;
  };
  EXPECT_DOUBLE_EQ(hidden(2, 4).value(), 0.75) << "of the times over both launches";
  EXPECT_FALSE(hidden(1.1, 4)) << "1.1 and 2 times as long: another launch may say 0.9";
  EXPECT_FALSE(hidden(0.9, 1.8)) << "waiting took less than nothing";
}

TEST(OverLaunches, ALaunchWithoutTheBaselineHasNoRatio) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Standings standings(cases, "ring_scan");
  standings.add(1, 1, {1});
  standings.add(2, 0, {1});
  standings.add(2, 1, {1});
  EXPECT_FALSE(standings.over_launches(1)->standing.ratio);
  EXPECT_FALSE(standings.over_launches(1)->standing.hidden);
}

}  // namespace
