// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/samples.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

namespace {

using namespace baton;

/// Counts its calls; run number i takes i seconds.
class CountingExecutor : public Executor {
 public:
  std::vector<int> local_ranks() const override { return {0}; }
  Refusal unsupported(std::span<const Schedule>) const override { return {}; }
  void prepare(std::vector<Schedule>) override {}
  void write(int, const Slice&, std::span<const float>) override {}
  void read(std::span<float>, int, const Slice&) const override {}
  void synchronise() override { calls += 's'; }
  double run() override {
    calls += 'r';
    return ++runs;
  }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

  std::string calls;
  int runs = 0;
};

/// The same with a device, which heats up by a degree a reading.
class CountingDevice : public CountingExecutor, public Device {
 public:
  Device* device() override { return this; }
  bool starts_on_device() const override { return true; }
  Refusal replay_unsupported() const override { return {}; }
  int replayed_rounds() const override { return 20; }
  double replay() override {
    calls += 'g';
    return 0.25 * ++runs;
  }
  HardwareLimits measure_limits() override { return {}; }
  std::vector<Reading> readings() const override { return {{"temperature_celsius", ++temperature}}; }
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }

  mutable double temperature = 30;
};

TEST(Rounds, IsolatedOnesEachStartTogether) {
  const World world(nullptr, nullptr);
  CountingExecutor executor;
  const Samples samples = measure_rounds(executor, world.all(), TimingMode::isolated, 2, 3);
  EXPECT_EQ(executor.calls, "srsrsrsrsr");
  EXPECT_EQ(samples.first_seconds, 1);
  EXPECT_EQ(samples.seconds, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(samples.rank_seconds, (std::vector<std::vector<double>>{{3, 4, 5}}));
}

TEST(Rounds, GraphsAreReplayedFromACommonStartEach) {
  const World world(nullptr, nullptr);
  CountingDevice executor;
  const Samples samples = measure_rounds(executor, world.all(), TimingMode::graph, 1, 2);
  EXPECT_EQ(samples.seconds, (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(executor.calls, "sgsgsg");
}

TEST(Rounds, DevicesAreReadBeforeAndAfterButNotBetween) {
  const World world(nullptr, nullptr);
  CountingDevice executor;
  const Samples samples = measure_rounds(executor, world.all(), TimingMode::isolated, 1, 2);
  EXPECT_EQ(samples.reading_names, (std::vector<std::string>{"temperature_celsius"}));
  EXPECT_EQ(samples.readings_before, (std::vector<std::vector<double>>{{31}}));
  EXPECT_EQ(samples.readings_after, (std::vector<std::vector<double>>{{32}}));
}

TEST(Rounds, AStreamStartsTogetherOnce) {
  const World world(nullptr, nullptr);
  CountingExecutor executor;
  const Samples samples = measure_rounds(executor, world.all(), TimingMode::streaming, 0, 3);
  EXPECT_EQ(samples.seconds, (std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(samples.first_seconds);
  EXPECT_EQ(executor.calls, "srrr");
}

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

}  // namespace
