// SPDX-License-Identifier: Apache-2.0
#include "harness/process/conditions.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace {

using namespace baton;

constexpr auto stat = "cpu  300 0 60 1000 0 0 0\ncpu0 100 5 20 500 9 9 9\ncpu1 200 0 40 500 0 0 0\nintr 7\n";

TEST(Conditions, BusyTimeIsThatOfTheGivenCoresAlone) {
  const std::int64_t tick = 1000000000 / sysconf(_SC_CLK_TCK);
  EXPECT_EQ(busy_nanoseconds(stat, {0}), 125 * tick) << "user, nice and system; waiting is not busy";
  EXPECT_EQ(busy_nanoseconds(stat, {0, 1}), 365 * tick);
}

TEST(Conditions, BusyTimeIsUnknownWhereACoreIsMissing) {
  EXPECT_FALSE(busy_nanoseconds(stat, {0, 7}));
  EXPECT_FALSE(busy_nanoseconds("", {0}));
}

TEST(Conditions, AsManyThreadsAsCoresAreNotTooMany) {
  EXPECT_FALSE((Conditions{.cores = 4, .busy_threads = 4, .other_load = {}}.oversubscribed()));
  EXPECT_TRUE((Conditions{.cores = 4, .busy_threads = 5, .other_load = {}}.oversubscribed()));
}

TEST(Conditions, TheLaunchMayUseAtLeastTheCoresOfThisProcess) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(static_cast<int>(cores_of_launch().size()), CPU_COUNT(&set));
}

}  // namespace
