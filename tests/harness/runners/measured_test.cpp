// SPDX-License-Identifier: Apache-2.0
// A round that is faster than its links allow: two ranks of one process, whose links and rounds
// take made-up times and compute real results.
#include "harness/runners/measured.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/simulator/topology/topology.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/runners/runner.hpp"
#include "tests/forwarding_executor.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

constexpr double alpha = 1e-6, bytes_per_second = 1e9;

/// What the executor below tells of itself.
struct MadeTimes {
  double round_seconds = 0;
  /// How much longer than at its best a message takes before the first timed round.
  double busy_link = 1;
  /// What an empty round of the device takes; 0 for no device.
  double floor_seconds = 0;
};

MadeTimes& made_times() {
  static MadeTimes times;
  return times;
}

/// The executor `local` with made-up times.
class MadeUp : public ForwardingExecutor, private Device {
 public:
  explicit MadeUp(int ranks) : ForwardingExecutor("local", ranks) {}

  void synchronise() override {}
  double run() override {
    ForwardingExecutor::run();
    has_run_ = true;
    return made_times().round_seconds;
  }
  double one_way_seconds(std::int64_t bytes, int, int) override {
    const double best = alpha + static_cast<double>(bytes) / bytes_per_second;
    return has_run_ ? best : best * made_times().busy_link;
  }
  Device* device() override { return made_times().floor_seconds > 0 ? this : nullptr; }

 private:
  bool starts_on_device() const override { return false; }
  Refusal replay_unsupported() const override { return "no recordings"; }
  int replayed_rounds() const override { return 1; }
  double replay() override { return 0; }
  HardwareLimits measure_limits() override { return {.floor_seconds = made_times().floor_seconds}; }
  std::vector<Reading> readings() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }

  bool has_run_ = false;
};

const RegisteredExecutor registered{{
    .name = "made_up_times",
    .summary = "for the test of rounds that are too fast",
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<MadeUp>(ranks); },
}};

class TooFast : public testing::Test {
 protected:
  Case all_scan() const {
    return {.workload =
                collective_workload(find_collective("all_scan"), Shape{1, 128, 512, 1}, Direction::forward),
            .backend = &find_backend("made_up_times"),
            .ranks = 2,
            .threads_per_rank = threads_};
  }
  /// The result of rounds of `seconds`; the bound is 1 us and 256 KiB at 1 GB/s: 263 us.
  Result verdict(double seconds) {
    made_times().round_seconds = seconds;
    const World world(nullptr, nullptr);
    return result_of(*runner(world));
  }
  std::unique_ptr<CaseRunner> runner(const World& world) const {
    return measured_runner(options_, std::nullopt, "made_up_times", 2, world.all());
  }
  Result result_of(CaseRunner& runner) const {
    Prepared prepared = runner.prepare(all_scan());
    runner.measure(prepared);
    return prepared.result;
  }
  ~TooFast() override { made_times() = {}; }

  Options options_ = [] {
    Options options;
    options.warmup = 1;
    options.rounds = 5;
    return options;
  }();
  int threads_ = -1000;  // so few that no load of this machine excuses a row
};

TEST_F(TooFast, ARowBelowHalfOfItsBoundIsWrong) {
  const Result found = verdict(100e-6);
  EXPECT_EQ(found.whole("wrong"), 1);
  EXPECT_FALSE(found.is_timed());
  EXPECT_EQ(found.text("first_wrong"), "the median of 100 us is below half of the bound of 263 us");
}

TEST_F(TooFast, ARowAtHalfOfItsBoundIsNot) { EXPECT_EQ(verdict(132e-6).whole("wrong"), 0); }

TEST_F(TooFast, ARowBelowAnEmptyRoundIsWrongWhateverItsBound) {
  made_times().floor_seconds = 400e-6;  // and the bound 663 us
  EXPECT_EQ(verdict(340e-6).whole("wrong"), 0);
  made_times().floor_seconds = 500e-6;
  const Result found = verdict(390e-6);
  EXPECT_EQ(found.whole("wrong"), 1);
  EXPECT_EQ(found.text("first_wrong"), "the median of 390 us is below the 500 us of an empty round");
}

TEST_F(TooFast, ALinkThatWasBusyIsMeasuredAgain) {
  made_times().busy_link = 10;
  EXPECT_EQ(verdict(140e-6).whole("wrong"), 0) << "140 us are below half of 2.6 ms and above half of 263 us";
  EXPECT_EQ(verdict(100e-6).whole("wrong"), 1) << "the link at its best still forbids it";
}

TEST_F(TooFast, BoundsOfALaunchDoNotDependOnWhatRanBefore) {
  made_times() = {.round_seconds = 140e-6, .busy_link = 10};
  const World world(nullptr, nullptr);
  const auto runner = this->runner(world);
  const AlphaBeta before = runner->prepare(all_scan()).traffic.link;
  for (int row = 0; row < 2; ++row) {  // the first makes the link be measured again
    const Result result = result_of(*runner);
    EXPECT_EQ(result.whole("wrong"), 0);
    EXPECT_EQ(result.real("alpha_seconds"), before.alpha_seconds) << row;
    EXPECT_EQ(result.real("beta_bytes_per_second"), before.beta) << row;
  }
}

TEST_F(TooFast, NothingIsSaidWhereThreadsWaitForCores) {
  threads_ = 1000;
  EXPECT_EQ(verdict(100e-6).whole("wrong"), 0);
}

}  // namespace
