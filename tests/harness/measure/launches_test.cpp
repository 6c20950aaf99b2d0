// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/measure/samples.hpp"

namespace {

using namespace baton;

TEST(Launches, AnIntervalIsStudentsOfLogarithms) {
  const Ratio ratio = over_launches({std::exp(1.0), std::exp(2.0), std::exp(3.0)});
  EXPECT_NEAR(std::log(ratio.value), 2, 1e-12);
  const double half = 4.303 / std::sqrt(3.0);  // the standard deviation is 1
  EXPECT_NEAR(std::log(ratio.ci95[0]), 2 - half, 1e-9);
  EXPECT_NEAR(std::log(ratio.ci95[1]), 2 + half, 1e-9);
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
