// SPDX-License-Identifier: Apache-2.0
#include "harness/record/comparisons.hpp"

#include <gtest/gtest.h>

#include "harness/cases/collective_workload.hpp"
#include "harness/layers/workload.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

Case scan_case(const char* name, int blocks = 1, int ranks = 4) {
  return {.workload = collective_workload(find_collective(name), Shape{}, Direction::forward),
          .backend = &find_backend("local"),
          .ranks = ranks,
          .blocks = blocks};
}

Case layer_case(Mode mode, const char* method = "zeco", int blocks = 1, const char* scan = "",
                const Shares& shares = {}) {
  Layer layer;
  layer.shares = shares;
  layer.share = {20, 2, 4, 6, 8, GateKind::vector};
  layer.mode = mode;
  layer.scan = scan;
  return {.workload = operator_workload(find_method(method), layer, {GateDraw::layer}),
          .backend = &find_backend("local"),
          .ranks = 4,
          .blocks = blocks};
}

TEST(Comparisons, RatiosReferToTheBaselineOfTheGroup) {
  const std::vector<Case> cases{scan_case("two_shot"), scan_case("ring_scan"), scan_case("two_shot", 1, 3)};
  Comparisons comparisons(cases, "ring_scan");
  comparisons.add(1, 0, {3, 3, 3});
  EXPECT_FALSE(comparisons.in_launch(1, 0).ratio) << "the baseline has not run";
  comparisons.add(1, 1, {2});
  comparisons.add(1, 2, {3});
  EXPECT_EQ(comparisons.in_launch(1, 0).ratio->value, 1.5);
  EXPECT_EQ(comparisons.in_launch(1, 1).ratio->value, 1);
  EXPECT_FALSE(comparisons.in_launch(1, 2).ratio) << "another number of ranks";
}

TEST(Comparisons, ABaselineOfSeveralBlockCountsIsTheSameCountOrItsFastest) {
  const std::vector<Case> cases{scan_case("all_scan", 1), scan_case("all_scan", 8),
                                scan_case("hierarchical_scan_chain", 1), scan_case("ring_scan")};
  Comparisons comparisons(cases, "all_scan");
  comparisons.add(1, 0, {4});
  comparisons.add(1, 1, {2});
  comparisons.add(1, 2, {2});
  comparisons.add(1, 3, {3});
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio->value, 0.5);
  EXPECT_EQ(comparisons.in_launch(1, 3).ratio->value, 1.5);
}

TEST(Comparisons, TheHiddenShareNeedsAllThreeModes) {
  const std::vector<Case> cases{layer_case(Mode::compute_only), layer_case(Mode::overlapped),
                                layer_case(Mode::exposed)};
  Comparisons comparisons(cases, "");
  comparisons.add(1, 0, {2});
  comparisons.add(1, 1, {3});
  EXPECT_FALSE(comparisons.in_launch(1, 1).hidden);
  comparisons.add(1, 2, {6});
  EXPECT_EQ(comparisons.in_launch(1, 1).hidden, 0.75);
  EXPECT_FALSE(comparisons.in_launch(1, 2).hidden) << "of overlapped rows only";
  EXPECT_FALSE(comparisons.in_launch(1, 1).ratio);
}

TEST(Comparisons, ACaseCountsOnceInALaunchAndNowhereElse) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Comparisons comparisons(cases, "ring_scan");
  comparisons.add(1, 0, {2});
  comparisons.add(1, 0, {9});
  comparisons.add(2, 1, {4});
  EXPECT_FALSE(comparisons.in_launch(1, 1).ratio) << "it was not timed there";
  EXPECT_FALSE(comparisons.in_launch(2, 1).ratio) << "the baseline was not";
  EXPECT_FALSE(comparisons.over_launches(0)) << "one launch";
  EXPECT_FALSE(comparisons.ratio(0, 1)) << "no launch has both";
  comparisons.add(2, 0, {2});
  EXPECT_EQ(comparisons.over_launches(0)->summary.median, 2);
  EXPECT_EQ(comparisons.ratio(1, 0)->value, 2);
}

TEST(Comparisons, AnOverlappedRowIsComparedWithOverlappedRowsOfTheBaseline) {
  const auto all = {Mode::compute_only, Mode::exposed, Mode::overlapped};
  std::vector<Case> cases;
  for (const char* method : {"lasp2", "zeco"})
    for (const Mode mode : all) cases.push_back(layer_case(mode, method));
  cases.push_back(layer_case(Mode::overlapped, "local"));
  Comparisons comparisons(cases, "lasp2");
  for (int index = 0; index < 7; ++index)
    comparisons.add(1, index, {std::vector{1., 4., 3., 2., 8., 6., 9.}[index]});
  for (const int index : {3, 4, 5}) EXPECT_EQ(comparisons.in_launch(1, index).ratio->value, 2) << index;
  EXPECT_EQ(comparisons.in_launch(1, 5).ratio_to, "lasp2 overlapped");
  EXPECT_EQ(comparisons.in_launch(1, 3).ratio_to, "lasp2 compute_only");
  EXPECT_EQ(comparisons.in_launch(1, 0).ratio->value, 1)
      << "the baseline's own rows take as long as themselves";
  EXPECT_EQ(comparisons.in_launch(1, 1).ratio->value, 1);
  EXPECT_EQ(comparisons.in_launch(1, 6).ratio->value, 3) << "a layer without an exchange, as published";
  EXPECT_EQ(comparisons.in_launch(1, 6).ratio_to, "lasp2 overlapped");
}

TEST(Comparisons, AModeThatTheBaselineDidNotTimeHasNoRatio) {
  const std::vector<Case> cases{layer_case(Mode::compute_only, "lasp2"),
                                layer_case(Mode::overlapped, "lasp2"), layer_case(Mode::overlapped, "zeco")};
  Comparisons comparisons(cases, "lasp2");
  comparisons.add(1, 0, {1});
  comparisons.add(1, 2, {4});
  EXPECT_FALSE(comparisons.in_launch(1, 2).ratio) << "the baseline's overlapped row failed";
  comparisons.add(1, 1, {2});
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio->value, 2);
}

TEST(Comparisons, ABaselineWithoutModesStandsBesideThemAll) {
  const std::vector<Case> cases{layer_case(Mode::overlapped, "local"), layer_case(Mode::exposed),
                                layer_case(Mode::overlapped)};
  Comparisons comparisons(cases, "local");
  for (int index = 0; index < 3; ++index) comparisons.add(1, index, {1.0 + index});
  EXPECT_EQ(comparisons.in_launch(1, 1).ratio->value, 2);
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio->value, 3);
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio_to, "local");
}

TEST(Comparisons, EachCountOfBlocksHasItsOwnModes) {
  std::vector<Case> cases{layer_case(Mode::compute_only)};
  for (const int blocks : {1, 8})
    for (const Mode mode : {Mode::exposed, Mode::overlapped})
      cases.push_back(layer_case(mode, "zeco", blocks));
  Comparisons comparisons(cases, "zeco");
  const std::vector<double> seconds{2, 6, 3, 10, 4};  // compute_only; exposed, overlapped of 1 and of 8
  for (int index = 0; index < 5; ++index) comparisons.add(1, index, {seconds[index]});
  EXPECT_EQ(comparisons.in_launch(1, 2).hidden, 0.75);
  EXPECT_EQ(comparisons.in_launch(1, 4).hidden, 0.75);
  EXPECT_EQ(comparisons.in_launch(1, 4).ratio_to, "zeco overlapped, 8 blocks");
}

TEST(Comparisons, EachScanHasItsOwnModes) {
  std::vector<Case> cases{layer_case(Mode::compute_only)};
  for (const char* scan : {"all_scan", "ring_scan"})
    for (const Mode mode : {Mode::exposed, Mode::overlapped})
      cases.push_back(layer_case(mode, "zeco", 1, scan));
  Comparisons comparisons(cases, "");
  const std::vector<double> seconds{2, 6, 3, 10, 4};  // compute_only; exposed, overlapped of each scan
  for (int index = 0; index < 5; ++index) comparisons.add(1, index, {seconds[index]});
  EXPECT_EQ(comparisons.in_launch(1, 2).hidden, 0.75);
  EXPECT_EQ(comparisons.in_launch(1, 4).hidden, 0.75);
}

TEST(Comparisons, RowsOfOtherSharesAreNoModesOfOneAnother) {
  std::vector<Case> cases;
  for (const Shares& shares : {Shares{}, Shares{ShareRule::even, 79}})
    for (const Mode mode : {Mode::compute_only, Mode::exposed, Mode::overlapped})
      cases.push_back(layer_case(mode, "zeco", 1, "", shares));
  Comparisons comparisons(cases, "zeco");
  const std::vector<double> seconds{2, 6, 3, 4, 12, 6};
  for (int index = 0; index < 6; ++index) comparisons.add(1, index, {seconds[index]});
  EXPECT_EQ(comparisons.in_launch(1, 2).hidden, 0.75);
  EXPECT_EQ(comparisons.in_launch(1, 5).hidden, 0.75);
  EXPECT_EQ(comparisons.in_launch(1, 5).ratio->value, 1) << "the baseline of the same shares";
  EXPECT_EQ(comparisons.in_launch(1, 5).ratio_to, "zeco (even) overlapped, 1 block");
}

TEST(Comparisons, TheFastestOfTheBaselinesBlockCountsIsTheFastestOfAllLaunches) {
  const std::vector<Case> cases{scan_case("all_scan", 1), scan_case("all_scan", 8), scan_case("ring_scan")};
  Comparisons comparisons(cases, "all_scan");
  for (const int launch : {1, 2}) {
    comparisons.add(launch, 0, {launch == 1 ? 2.0 : 8.0});
    comparisons.add(launch, 1, {3});
    comparisons.add(launch, 2, {6});
  }
  EXPECT_EQ(comparisons.in_launch(1, 2).ratio_to, "all_scan, 1 block");
  const Relative over = comparisons.over_launches(2)->relative;
  EXPECT_EQ(over.ratio_to, "all_scan, 8 blocks");
  EXPECT_NEAR(over.ratio->value, 2, 1e-12) << "one row in both launches";
}

TEST(OverLaunches, RatiosAreFormedLaunchByLaunch) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Comparisons comparisons(cases, "ring_scan");
  comparisons.add(1, 0, {0.5});
  comparisons.add(1, 1, {1, 1, 7});
  EXPECT_FALSE(comparisons.over_launches(1)) << "one launch";
  comparisons.add(2, 0, {8});
  comparisons.add(2, 1, {4, 4, 4});
  const auto over = comparisons.over_launches(1);
  EXPECT_EQ(over->launches, 2);
  EXPECT_DOUBLE_EQ(over->summary.median, 2) << "the geometric mean of the launches' medians";
  EXPECT_EQ(over->summary.max, 7) << "of all rounds";
  EXPECT_DOUBLE_EQ(over->relative.ratio->value, 1);
  EXPECT_LT(over->relative.ratio->ci95[0], 0.01) << "two launches say little";
}

TEST(OverLaunches, LaunchesThatAgreeExactlyStillSpread) {
  std::vector<Case> cases{scan_case("ring_scan"), scan_case("ring_scan")};
  cases[1].backend = &find_backend("simulator");
  Comparisons comparisons(cases, "");
  for (const int launch : {1, 2, 3})
    for (const int index : {0, 1}) comparisons.add(launch, index, {2});
  EXPECT_LT(comparisons.over_launches(0)->summary.ci95[0], 2);
  EXPECT_EQ(comparisons.over_launches(1)->summary.ci95, (Interval{2, 2})) << "simulated times are exact";
}

TEST(OverLaunches, TheHiddenShareNeedsLaunchesThatTellWhatWaitingCosts) {
  const auto hidden = [](double first_exposed, double second_exposed) {
    const std::vector<Case> cases{layer_case(Mode::compute_only), layer_case(Mode::exposed),
                                  layer_case(Mode::overlapped)};
    Comparisons comparisons(cases, "");
    for (const int launch : {1, 2}) {
      comparisons.add(launch, 0, {1.0 * launch});
      comparisons.add(launch, 1, {launch == 1 ? first_exposed : second_exposed});
      comparisons.add(launch, 2, {1.25 * launch});
    }
    return comparisons.over_launches(2)->relative.hidden;
  };
  EXPECT_DOUBLE_EQ(hidden(2, 4).value(), 0.75) << "of the times over both launches";
  EXPECT_FALSE(hidden(1.1, 4)) << "1.1 and 2 times as long: another launch may say 0.9";
  EXPECT_FALSE(hidden(0.9, 1.8)) << "waiting took less than nothing";
}

TEST(OverLaunches, ALaunchWithoutTheBaselineHasNoRatio) {
  const std::vector<Case> cases{scan_case("ring_scan"), scan_case("two_shot")};
  Comparisons comparisons(cases, "ring_scan");
  comparisons.add(1, 1, {1});
  comparisons.add(2, 0, {1});
  comparisons.add(2, 1, {1});
  EXPECT_FALSE(comparisons.over_launches(1)->relative.ratio);
  EXPECT_FALSE(comparisons.over_launches(1)->relative.hidden);
}

TEST(OverLaunches, TheBoundIsOfAllLaunchesAsTheTimeIs) {
  const std::vector<Case> cases{scan_case("ring_scan")};
  Comparisons comparisons(cases, "");
  EXPECT_FALSE(comparisons.bound(0));
  comparisons.add(1, 0, {1}, 0.2);
  EXPECT_EQ(comparisons.bound(0)->seconds, 0.2);
  EXPECT_FALSE(comparisons.bound(0)->share) << "one launch";
  comparisons.add(2, 0, {1}, 0.8);
  EXPECT_NEAR(comparisons.bound(0)->seconds, 0.4, 1e-12);
  EXPECT_NEAR(comparisons.bound(0)->share->value, 0.4, 1e-12);
  comparisons.add(3, 0, {1});
  EXPECT_FALSE(comparisons.bound(0)) << "a launch has none";
}

}  // namespace
