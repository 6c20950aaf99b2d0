// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/orders.hpp"

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

/// A state in K blocks through P ranks.
std::vector<Schedule> pipeline(int P, int K) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < P; ++r) {
    Schedule s(r, P);
    const Slice own = s.input("own", K), into = s.output("into", K, false);
    for (int k = 0; k < K; ++k) {
      if (r > 0) s.recv(into.block(k, K), r - 1);
      if (r < P - 1) s.send(r + 1, (r == 0 ? own : into).block(k, K));
    }
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST(MessageRounds, KeepAPipelineFull) {
  const auto rounds = message_rounds(pipeline(4, 3));
  EXPECT_EQ(rounds[0], (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(rounds[1], (std::vector<int>{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(rounds[3], (std::vector<int>{0, 1, 2}));
}

TEST(MessageRounds, AreNotToBeHadWhereMessagesWouldOvertake) {
  // Rank 0 can send its first message only when the answer to its second one has come.
  Schedule asks(0, 2), answers(1, 2);
  const Slice own = asks.input("own", 1), came = asks.output("came", 1);
  asks.recv(came, 1);
  asks.send(1, came);
  asks.send(1, own);
  const Slice first = answers.output("first", 1), second = answers.output("second", 1);
  answers.recv(first, 0);
  answers.recv(second, 0);
  answers.send(0, second);
  EXPECT_TRUE(message_rounds(std::vector{asks, answers}).empty());
}

}  // namespace
