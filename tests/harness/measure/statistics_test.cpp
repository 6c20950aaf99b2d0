// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace baton;

std::vector<double> one_to(int n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Statistics, IntervalOfFiftyRoundsIsRanks18To33) {
  const Interval ci = median_ci95(one_to(50));
  EXPECT_EQ(ci[0], 18);
  EXPECT_EQ(ci[1], 33);
}

TEST(Statistics, IntervalOfFewRoundsIsTheirRange) {
  for (int n : {1, 2, 5}) {
    const Interval ci = median_ci95(one_to(n));
    EXPECT_EQ(ci[0], 1);
    EXPECT_EQ(ci[1], n);
  }
}

TEST(Statistics, IntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> times(0, 1);  // median 1
  int covered = 0;
  constexpr int trials = 2000;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> sample(50);
    for (double& value : sample) value = times(random);
    const Interval ci = median_ci95(sample);
    covered += ci[0] <= 1 && 1 <= ci[1];
  }
  EXPECT_GT(covered, 0.95 * trials);
}

TEST(Statistics, SummaryOfKnownValues) {
  const Summary summary = summarise({3, 1, 2, 10});
  EXPECT_EQ(summary.mean, 4);
  EXPECT_EQ(summary.median, 2.5);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.p95, 10);
  EXPECT_EQ(summary.max, 10);
}

TEST(Statistics, RatioOfMediansHasAnIntervalAroundIt) {
  const Ratio ratio = ratio_of_medians(one_to(50), one_to(100));
  EXPECT_DOUBLE_EQ(ratio.value, 25.5 / 50.5);
  EXPECT_LT(ratio.ci95[0], ratio.value);
  EXPECT_GT(ratio.ci95[1], ratio.value);
  // Of the median's standard error, 1.25 sigma / sqrt(n), a 95 % interval is about four: (0.5 * 50
  // / 50.5) * 0.51 here.
  const double width = ratio.ci95[1] - ratio.ci95[0];
  EXPECT_GT(width, 0.25);
  EXPECT_LT(width, 0.5);
  const Ratio same = ratio_of_medians({2, 2, 2}, {1, 1, 1});
  EXPECT_EQ(same.value, 2);
  EXPECT_EQ(same.ci95, (Interval{2, 2}));
}

TEST(Launches, AnIntervalIsStudentsOfLogarithms) {
  const Ratio ratio = over_launches({std::exp(1.0), std::exp(2.0), std::exp(3.0)});
  EXPECT_NEAR(std::log(ratio.value), 2, 1e-12);
  const double half = 4.30265 / std::sqrt(3.0);  // the standard deviation is 1
  EXPECT_NEAR(std::log(ratio.ci95[0]), 2 - half, 1e-9);
  EXPECT_NEAR(std::log(ratio.ci95[1]), 2 + half, 1e-9);
}

TEST(Launches, AnIntervalIsNoNarrowerThanTimersTell) {
  const Ratio ratio = over_launches({2, 2, 2});
  EXPECT_NEAR(std::log(ratio.ci95[1] / 2), least_spread * 4.30265 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(over_launches({2, 2, 2}, 0).ci95, (Interval{2, 2})) << "what is the same at every run";
}

TEST(Launches, OneNumberIsItsOwnMean) { EXPECT_EQ(geometric_mean({0.1}), 0.1); }

TEST(Launches, AnIntervalHoldsWhatItStandsBeside) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(-9, 2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> a(1 + trial % 9), b(1 + trial % 4);
    for (double& value : a) value = times(random);
    for (double& value : b) value = times(random);
    const auto expect_inside = [&](double value, const Interval& ci95) {
      EXPECT_LE(ci95[0], value) << trial;
      EXPECT_GE(ci95[1], value) << trial;
    };
    expect_inside(summarise(a).median, summarise(a).ci95);
    const Ratio of_rounds = ratio_of_medians(a, b);
    expect_inside(of_rounds.value, of_rounds.ci95);
    a.push_back(a[0]);
    const Ratio launches = over_launches(a);
    expect_inside(launches.value, launches.ci95);
  }
}

/// The share of experiments whose interval has the true value, for so many launches.
double coverage(int launches) {
  std::mt19937_64 random(static_cast<std::uint64_t>(launches));
  std::normal_distribution<double> normal(0, 0.05);
  constexpr int experiments = 4000;
  int covered = 0;
  for (int i = 0; i < experiments; ++i) {
    std::vector<double> values(launches);
    for (double& value : values) value = std::exp(normal(random));
    const Interval interval = over_launches(values).ci95;
    covered += interval[0] <= 1 && 1 <= interval[1];
  }
  return static_cast<double>(covered) / experiments;
}

TEST(Launches, AnIntervalCoversInNineteenOfTwentyExperiments) {
  for (const int launches : {2, 3, 5, 12, 40}) EXPECT_NEAR(coverage(launches), 0.95, 0.012) << launches;
}

TEST(Launches, TheMedianIsThatOfLaunchesAndTheRestOfAllRounds) {
  const Summary summary = summarise_launches({{1, 1, 10}, {4, 4, 4}});
  EXPECT_DOUBLE_EQ(summary.median, 2);
  EXPECT_DOUBLE_EQ(summary.mean, 4);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 10);
  EXPECT_LE(summary.ci95[0], 1);
  EXPECT_GE(summary.ci95[1], 4);
}

}  // namespace
