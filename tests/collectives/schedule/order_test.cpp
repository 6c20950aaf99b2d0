// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/order.hpp"

#include <gtest/gtest.h>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(RunOrder, PutsASendBeforeWhatItsMessageFeeds) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 3; ++r) {
    Schedule s(r, 3);
    const Slice own = s.input("own", 2), into = s.output("into", 2, false);
    if (r > 0) s.recv(into, r - 1);
    if (r < 2) s.send(r + 1, r == 0 ? own : into);
    schedules.push_back(std::move(s));
  }
  const auto order = run_order(schedules);
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].rank, 0);
  EXPECT_EQ(order[1].rank, 1);
  EXPECT_EQ(order[0].into, (Slice{1, 0, 2}));
}

TEST(RunOrder, RefusesADeadlock) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 2; ++r) {
    Schedule s(r, 2);
    const Slice into = s.output("into", 2);
    s.recv(into, 1 - r);
    s.send(1 - r, into);
    schedules.push_back(std::move(s));
  }
  EXPECT_THROW(run_order(schedules), ScheduleError);
}

}  // namespace
