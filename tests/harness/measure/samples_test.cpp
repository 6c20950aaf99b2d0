// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/samples.hpp"

#include <gtest/gtest.h>

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

}  // namespace
