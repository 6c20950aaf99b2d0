// SPDX-License-Identifier: Apache-2.0
// What every executor on GPUs promises beyond right results, on as many ranks as there are GPUs, at
// most four.
//
//   device_test EXECUTOR [GoogleTest's flags]
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/cases/verify.hpp"
#include "tests/launched_tests.hpp"

namespace {

using namespace baton;

ExecutorsUnderTest* the_executors = nullptr;

/// Ends this process, and its launcher the others, if a test has not ended by then: a device may
/// wait without end.
class TimeLimit {
 public:
  explicit TimeLimit(unsigned seconds) { alarm(seconds); }
  ~TimeLimit() { alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

class DeviceExecutor : public testing::Test {
 protected:
  int ranks() const { return the_executors->world().size(); }
  Executor& executor() { return the_executors->on(ranks()); }
  Device& device() { return *executor().device(); }
  const Team& team() { return the_executors->team(ranks()); }

  std::shared_ptr<const Workload> all_scan(const Shape& shape,
                                           Direction direction = Direction::forward) const {
    return collective_workload(find_collective("all_scan"), shape, direction);
  }
  void prepare(const Workload& workload, int blocks = 4) {
    schedules_ = workload.build({.ranks = ranks(), .blocks = blocks});
    ASSERT_EQ(executor().unsupported(schedules_).reason(), "");
    executor().prepare(schedules_);
  }
  void load(const Workload& workload, std::uint64_t seed) {
    Oracles oracles(team());
    workload.load(executor(), schedules_, seed, oracles);
  }
  void expect_right(const Workload& workload, std::uint64_t seed) {
    Oracles oracles(team());
    const Comparison comparison = workload.compare(executor(), schedules_, seed, oracles);
    EXPECT_EQ(team().sum(comparison.wrong), 0) << team().first(comparison.first);
  }

  /// Replays the collective `name` twice, if the executor can run it.
  static void expect_right_replays(const char* name, const Shape& shape, const Team& members,
                                   Executor& executor) {
    const auto workload = collective_workload(find_collective(name), shape, Direction::forward);
    const auto schedules = workload->build({.ranks = members.size(), .blocks = 1});
    if (executor.unsupported(schedules)) return;
    executor.prepare(schedules);
    Oracles oracles(members);
    for (std::uint64_t seed : {1, 2}) {
      workload->load(executor, schedules, seed, oracles);
      executor.synchronise();
      EXPECT_GT(executor.device()->replay(), 0);
      const Comparison comparison = workload->compare(executor, schedules, seed, oracles);
      EXPECT_EQ(members.sum(comparison.wrong), 0)
          << name << ", " << shape.heads << " heads: " << members.first(comparison.first);
    }
  }

  std::vector<Schedule> schedules_;
  const Shape shape_{.heads = 2, .d_k = 64, .d_v = 128};
};

TEST_F(DeviceExecutor, ReplaysWhatItRecorded) {
  const auto workload = all_scan(shape_);
  prepare(*workload);
  ASSERT_EQ(device().replay_unsupported().reason(), "");
  for (std::uint64_t seed : {1, 2}) {
    load(*workload, seed);
    executor().synchronise();
    EXPECT_GT(device().replay(), 0);
    expect_right(*workload, seed);
  }
}

TEST_F(DeviceExecutor, ARecordingDoesNotOutliveItsSchedule) {
  for (Direction direction : {Direction::forward, Direction::reverse}) {
    const auto workload = all_scan(shape_, direction);
    prepare(*workload);
    load(*workload, 1);
    device().replay();
    expect_right(*workload, 1);
  }
}

/// NCCL registers memory with other ranks for large messages and collectives that are recorded, and
/// forgets it some calls later. Cases share one memory, so a case meets the registrations of those
/// before it. With two ranks, messages and collectives concern the same peer.
TEST_F(DeviceExecutor, ReplaysCollectivesAfterMessages) {
  constexpr int two = 2;
  if (!the_executors->have(two)) GTEST_SKIP() << "needs two GPUs";
  const Team& members = the_executors->team(two);
  if (!members.is_member()) return;
  const TimeLimit limit(60);
  for (const std::int64_t heads : {2, 32, 64, 128})  // 128 KiB, 2 MiB, 4 MiB, 8 MiB
    for (const char* name : {"all_gather_scan_direct", "nccl_all_gather_scan"})
      expect_right_replays(name, {.heads = heads, .d_k = 128, .d_v = 128}, members, the_executors->on(two));
}

TEST_F(DeviceExecutor, AStreamGivesATimeForEachRound) {
  const auto workload = all_scan(shape_);
  prepare(*workload);
  load(*workload, 1);
  const auto seconds = executor().stream(30);
  ASSERT_EQ(seconds.size(), 30u);
  for (double round : seconds) EXPECT_GT(round, 0);
  expect_right(*workload, 1);
}

TEST_F(DeviceExecutor, ATraceTellsOfEveryStepAndLeavesTheResult) {
  const auto workload = all_scan(shape_);
  prepare(*workload);
  load(*workload, 1);
  executor().synchronise();
  const auto times = executor().run_traced();
  if (times.empty()) GTEST_SKIP() << the_executors->name() << " cannot tell";
  const int rank = executor().local_ranks().front();
  std::set<int> steps;
  for (const StepTime& time : times) {
    EXPECT_EQ(time.rank, rank);
    EXPECT_LE(0, time.start_seconds);
    EXPECT_LE(time.start_seconds, time.finish_seconds);
    steps.insert(time.step);
  }
  EXPECT_EQ(steps.size(), schedules_[rank].steps().size());
  expect_right(*workload, 1);
}

TEST_F(DeviceExecutor, RanksMayComeLateToARound) {
  const auto workload = all_scan(shape_);
  prepare(*workload);
  std::mt19937 random(team().rank());
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    load(*workload, seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    executor().run();
    expect_right(*workload, seed);
  }
}

TEST_F(DeviceExecutor, WaitingForTheLastToComeIsNoPartOfARound) {
  const auto workload = all_scan(shape_);
  prepare(*workload);
  for (int late = 0; late < ranks(); ++late) {
    if (team().rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_LT(executor().run(), 0.1) << "rank " << late << " was late";
  }
}

TEST_F(DeviceExecutor, AWireHasATermForEverythingInABound) {
  const HardwareLimits limits = device().measure_limits();
  EXPECT_GT(limits.floor_seconds, 0);
  if (ranks() < 2 || !device().starts_on_device()) return;
  EXPECT_GT(limits.alpha_seconds, 0);
  EXPECT_GT(limits.beta, 1e9);
}

TEST_F(DeviceExecutor, ReadingsAlwaysHaveTheSameNames) {
  const std::vector<std::string> names{"sm_clock_mhz",        "memory_clock_mhz", "power_watts",
                                       "temperature_celsius", "throttle_reasons", "late_starts"};
  const auto workload = all_scan(shape_);
  prepare(*workload);
  for (int round = 0; round < 3; ++round) {
    executor().run();
    std::vector<std::string> got;
    for (const Reading& reading : device().readings()) {
      got.push_back(reading.name);
      // A driver that gives no reading shows as -1, and so does a choice that nobody made. A GPU
      // that has just run a round has clocks and takes power.
      const bool may_be_zero = reading.name == "throttle_reasons" || reading.name == "late_starts" ||
                               reading.name == "fastest_candidate";
      EXPECT_TRUE(reading.value == -1 || reading.value > 0 || (may_be_zero && reading.value == 0))
          << reading.name << " is " << reading.value;
    }
    if (got.back() == "fastest_candidate") got.pop_back();  // executor peer alone has it
    EXPECT_EQ(got, names);
  }
}

TEST_F(DeviceExecutor, KeepsBf16Narrow) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks(); ++rank) {
    Schedule s(rank, ranks());
    const Slice own = s.input("own", 6, Dtype::bf16);
    s.copy(s.output("into", 6, true, Dtype::bf16), own);
    schedules.push_back(std::move(s));
  }
  if (const Refusal refusal = executor().unsupported(schedules)) GTEST_SKIP() << refusal.reason();
  executor().prepare(schedules);
  const int rank = executor().local_ranks().front();
  // 1 + 2^-8 lies between two neighbours of bf16, of which 1 is even; 1 + 3 * 2^-8 goes up.
  const std::vector<float> own{1, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f, -0.5f, 0, 3e38f};
  executor().write(rank, {0, 0, 6, Dtype::bf16}, own);
  executor().run();
  std::vector<float> into(6);
  executor().read(into, rank, {1, 0, 6, Dtype::bf16});
  EXPECT_EQ(into[0], 1);
  EXPECT_EQ(into[1], 1);
  EXPECT_EQ(into[2], 1 + 4 * 0x1p-8f);
  EXPECT_EQ(into[3], -0.5f);
  EXPECT_EQ(into[4], 0);
  EXPECT_NEAR(into[5], 3e38f, 3e38f * 0x1p-8f);
}

TEST_F(DeviceExecutor, RefusesNativesThatItDoesNotHave) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks(); ++rank) {
    schedules.emplace_back(rank, ranks());
    schedules.back().native("no_such_native", 1, {}, {});
  }
  EXPECT_EQ(executor().unsupported(schedules).reason(),
            "no_such_native is no native of " + the_executors->name());
}

TEST_F(DeviceExecutor, RefusesWhatDoesNotFitIntoItsMemory) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks(); ++rank) {
    schedules.emplace_back(rank, ranks());
    schedules.back().input("own", std::int64_t{1} << 45);
  }
  EXPECT_NE(executor().unsupported(schedules).reason().find("GiB of GPU memory"), std::string::npos);
}

}  // namespace

int main(int argc, char** argv) {
  return baton::launched_tests(argc, argv, [](baton::ExecutorsUnderTest& executors) {
    the_executors = &executors;
    testing::GTEST_FLAG(brief) = false;
  });
}
