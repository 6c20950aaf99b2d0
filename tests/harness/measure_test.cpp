// SPDX-License-Identifier: Apache-2.0
#include "harness/measure.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace baton;

/// Counts its calls; run number i takes i seconds.
class CountingExecutor : public Executor {
 public:
  std::vector<int> local_ranks() const override { return {0}; }
  std::string supports(std::span<const Schedule>) const override { return {}; }
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

TEST(Rounds, IsolatedOnesEachStartTogether) {
  const World world(nullptr, nullptr);
  CountingExecutor executor;
  Rounds rounds(executor, world.all(), Cadence::isolated, 3);
  rounds.warm_up(2);
  for (double expected : {3, 4, 5}) EXPECT_EQ(rounds.next(), expected);
  EXPECT_EQ(executor.calls, "srsrsrsrsr");
  const Samples samples = rounds.samples();
  EXPECT_EQ(samples.first_seconds, 1);
  EXPECT_EQ(samples.seconds, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(samples.rank_seconds, (std::vector<std::vector<double>>{{3, 4, 5}}));
}

TEST(Rounds, AStreamStartsTogetherOnce) {
  const World world(nullptr, nullptr);
  CountingExecutor executor;
  Rounds rounds(executor, world.all(), Cadence::streaming, 3);
  for (double expected : {1, 2, 3}) EXPECT_EQ(rounds.next(), expected);
  EXPECT_EQ(executor.calls, "srrr");
}

}  // namespace
