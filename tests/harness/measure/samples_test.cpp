// SPDX-License-Identifier: Apache-2.0
#include "harness/measure/samples.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "collectives/collective.hpp"
#include "harness/process/world.hpp"

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
  const Samples samples = measure_rounds(executor, world.all(), Cadence::isolated, 2, 3);
  EXPECT_EQ(executor.calls, "srsrsrsrsr");
  EXPECT_EQ(samples.first_seconds, 1);
  EXPECT_EQ(samples.seconds, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(samples.rank_seconds, (std::vector<std::vector<double>>{{3, 4, 5}}));
}

TEST(Rounds, GraphsAreReplayedFromACommonStartEach) {
  const World world(nullptr, nullptr);
  CountingDevice executor;
  const Samples samples = measure_rounds(executor, world.all(), Cadence::graph, 1, 2);
  EXPECT_EQ(samples.seconds, (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(executor.calls, "sgsgsg");
}

TEST(Rounds, DevicesAreReadBeforeAndAfterButNotBetween) {
  const World world(nullptr, nullptr);
  CountingDevice executor;
  const Samples samples = measure_rounds(executor, world.all(), Cadence::isolated, 1, 2);
  EXPECT_EQ(samples.reading_names, (std::vector<std::string>{"temperature_celsius"}));
  EXPECT_EQ(samples.readings_before, (std::vector<std::vector<double>>{{31}}));
  EXPECT_EQ(samples.readings_after, (std::vector<std::vector<double>>{{32}}));
}

TEST(Rounds, AStreamStartsTogetherOnce) {
  const World world(nullptr, nullptr);
  CountingExecutor executor;
  const Samples samples = measure_rounds(executor, world.all(), Cadence::streaming, 0, 3);
  EXPECT_EQ(samples.seconds, (std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(samples.first_seconds);
  EXPECT_EQ(executor.calls, "srrr");
}

constexpr Shape shape{1, 4, 3, 2};

/// A scan on three local ranks whose rounds may go wrong.
class Faulty : public Executor {
 public:
  /// `fault` is asked before every round, with its number from 0, and returns whether the round
  /// runs.
  explicit Faulty(std::function<bool(Faulty&, int)> fault)
      : local_(find_executor("local").make(3)), fault_(std::move(fault)) {
    schedules = build_all(find_collective("all_scan"), shape, {.ranks = 3, .blocks = 2});
    local_->prepare(schedules);
    write_inputs(*local_, {Kind::exclusive_scan, shape, 3, Direction::forward, 1});
  }

  std::vector<int> local_ranks() const override { return local_->local_ranks(); }
  Refusal unsupported(std::span<const Schedule> all) const override { return local_->unsupported(all); }
  void prepare(std::vector<Schedule> all) override { local_->prepare(std::move(all)); }
  void write(int rank, const Slice& into, std::span<const float> from) override {
    local_->write(rank, into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    local_->read(into, rank, from);
  }
  void synchronise() override {}
  double run() override { return fault_(*this, round_++) ? local_->run() : 0; }
  double one_way_seconds(std::int64_t, int, int) override { return 0; }

  std::vector<Schedule> schedules;

 private:
  std::unique_ptr<Executor> local_;
  std::function<bool(Faulty&, int)> fault_;
  int round_ = 0;
};

/// What a watch of one warm-up round and five rounds finds.
Comparison found(Faulty& executor, Cadence cadence = Cadence::isolated,
                 const std::vector<std::string>& vary = {}) {
  const World world(nullptr, nullptr);
  RoundWatch watch(executor, executor.schedules, vary);
  measure_rounds(executor, world.all(), cadence, 1, 5, &watch);
  return watch.found();
}

TEST(RoundWatch, FindsNothingWhereRoundsAreAlike) {
  Faulty executor([](Faulty&, int) { return true; });
  EXPECT_EQ(found(executor).wrong, 0);
  EXPECT_EQ(compare(executor, {Kind::exclusive_scan, shape, 3, Direction::forward, 1}).wrong, 0)
      << "the first rank's output is left untouched";
}

TEST(RoundWatch, NamesTheRoundThatLeavesSomethingElse) {
  Faulty executor([](Faulty& faulty, int round) {
    // The inputs of one round differ in one element, which the next ranks' outputs show.
    const float value = round == 3 ? 5.0F : 7.0F;
    faulty.write(1, {0, 4, 1}, {&value, 1});
    return true;
  });
  const Comparison comparison = found(executor);
  EXPECT_EQ(comparison.wrong, 1);
  EXPECT_EQ(comparison.first, "round 3 of 5 left other results than warm-up round 1 of 1 on rank 2");
}

TEST(RoundWatch, LeavesOutOutputsThatVary) {
  Faulty executor([](Faulty&, int round) { return round < 4; });
  EXPECT_EQ(found(executor, Cadence::isolated, {"into"}).wrong, 0);
}

TEST(RoundWatch, FindsRoundsThatDoNothing) {
  Faulty executor([](Faulty&, int round) { return round < 4; });
  const Comparison comparison = found(executor);
  EXPECT_EQ(comparison.wrong, 2);
  EXPECT_EQ(comparison.first, "round 4 of 5 left other results than warm-up round 1 of 1 on rank 1");
}

TEST(RoundWatch, LooksAtAStreamAsAWhole) {
  Faulty executor([](Faulty&, int round) { return round < 1; });
  const Comparison comparison = found(executor, Cadence::streaming);
  EXPECT_EQ(comparison.wrong, 1);
  EXPECT_EQ(comparison.first,
            "the stream of 5 rounds left other results than warm-up round 1 of 1 on rank 1");
}

}  // namespace
