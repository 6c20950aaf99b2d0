// SPDX-License-Identifier: Apache-2.0
#include "harness/machine/conditions.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>

namespace {

using namespace baton;

const std::map<int, CoreTicks> two_cores{{0, {.busy = 125, .stolen = 0, .all = 634}},
                                         {1, {.busy = 240, .stolen = 3, .all = 743}}};

TEST(Conditions, BusyTimeIsThatOfTheGivenCoresAlone) {
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(busy_seconds(two_cores, {0}).value(), 125 / ticks_per_second);
  EXPECT_DOUBLE_EQ(busy_seconds(two_cores, {0, 1}).value(), 365 / ticks_per_second);
}

TEST(Conditions, BusyTimeIsUnknownWhereACoreIsMissing) {
  EXPECT_FALSE(busy_seconds(two_cores, {0, 7}));
  EXPECT_FALSE(busy_seconds(two_cores, {}));
  EXPECT_FALSE(busy_seconds({}, {0}));
}

TEST(Conditions, CoresOfThisHostAreAllCounted) {
  const auto ticks = core_ticks();
  for (const int core : allowed_hardware_threads()) EXPECT_TRUE(ticks.contains(core)) << core;
}

TEST(Conditions, CoresAreSharedWhereOthersTakeHalfOfOneFromTheRanks) {
  EXPECT_FALSE((Conditions{.cores = 2, .busy_threads = 2, .other_load = 0.1}).shared_cores());
  EXPECT_FALSE((Conditions{.cores = 4, .busy_threads = 2, .other_load = 2.0}).shared_cores());
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 2, .other_load = 0.8}).shared_cores());
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 4, .other_load = 0.0}).shared_cores());
  EXPECT_FALSE((Conditions{.cores = 2, .busy_threads = 1, .other_load = {}}).shared_cores()) << "unknown";
}

TEST(Conditions, EveryPieceOfWorkIsDoneOnce) {
  for (const std::vector<int>& cores : {std::vector<int>{}, allowed_hardware_threads()}) {
    std::vector<std::atomic<int>> done(37);
    run_on(cores, 37, [&](int i) { ++done[i]; });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Conditions, AThreadStartsOnItsCoreAndMayLeave) {
  const std::vector<int> cores = allowed_hardware_threads();
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  std::mutex mutex;
  std::set<std::size_t> seen;
  run_on(cores, static_cast<int>(cores.size()), [&](int) {
    const std::lock_guard lock(mutex);
    seen.insert(allowed_hardware_threads().size());
  });
  EXPECT_EQ(seen, std::set<std::size_t>{cores.size()});
}

TEST(Conditions, AsManyThreadsAsCoresAreNotTooMany) {
  EXPECT_FALSE((Conditions{.cores = 4, .busy_threads = 4, .other_load = {}}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 4, .busy_threads = 5, .other_load = {}}.oversubscribed()));
}

TEST(Conditions, AQuotaAllowsAsManyThreadsAsItHasTimeFor) {
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 2, .other_load = {}, .quota = 1.0}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 2, .other_load = {}, .quota = 1.5}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 1, .other_load = {}, .quota = 0.5}.oversubscribed()));
  EXPECT_FALSE((Conditions{.cores = 2, .busy_threads = 1, .other_load = {}, .quota = 1.5}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 2, .busy_threads = 3, .other_load = {}, .quota = 8}.oversubscribed()));
}

TEST(Conditions, CoresAreSaidWithTheirQuota) {
  EXPECT_EQ(cores_in_words(1, {}), "1 core");
  EXPECT_EQ(cores_in_words(2, 1.5), "1.5 of 2 cores (quota)");
  EXPECT_EQ(cores_in_words(Cores{.physical = {{0, {0, 1}}, {1, {2}}}}), "2 cores");
}

}  // namespace
