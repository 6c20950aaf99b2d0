// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/orders.hpp"

#include <gtest/gtest.h>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

TEST(MessageGroups, IndependentMessagesShareAGroup) {
  Schedule s(0, 3);
  const Slice own = s.input("own", 4), into = s.output("into", 4);
  s.send(1, own);
  s.recv(into, 1);
  s.send(2, own);
  EXPECT_EQ(message_groups(s), (std::vector<int>{0, 0, 0}));
}

TEST(MessageGroups, AMessageThatWaitsThroughALocalStepOpensTheNext) {
  Schedule s(1, 3);
  const Slice into = s.output("into", 4), carry = s.scratch("carry", 4);
  s.recv(into, 0);
  s.copy(carry, into);
  s.send(2, carry);
  EXPECT_EQ(message_groups(s), (std::vector<int>{0, -1, 1}));
}

TEST(MessageGroups, APipelineReceivesTheNextBlockBesideTheSendOfTheLast) {
  Schedule s(1, 3);
  const Slice into = s.output("into", 6);
  for (int k = 0; k < 3; ++k) {
    s.recv(into.block(k, 3), 0);
    s.send(2, into.block(k, 3));
  }
  EXPECT_EQ(message_groups(s), (std::vector<int>{0, 1, 1, 2, 2, 3}));
}

TEST(MessageGroups, PartsHoldTheFirstOfEveryWayThenTheSecond) {
  Schedule s(1, 3);
  const Slice own = s.input("own", 4), into = s.output("into", 4), carry = s.scratch("carry", 4);
  s.send(0, own);
  s.send(0, own);
  s.recv(into, 2);
  s.copy(carry, into);
  s.send(2, carry);
  const auto groups = message_groups(s);
  EXPECT_EQ(groups, (std::vector<int>{0, 0, 0, -1, 1}));
  EXPECT_EQ(parts_of(s, groups), (std::vector<int>{0, 1, 0, -1, 2}));
}

/// Rank 0 sends two tensors and a state that it has computed. Then the ranks exchange gradients,
/// before which rank 1 has computed more often.
std::vector<Schedule> states_then_gradients() {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    Schedule s(rank, 2);
    const Slice own = s.input("own", 2), state = s.scratch("state", 1), gradients = s.scratch("gradients", 1);
    const Slice into = s.output("into", 4, false);
    for (int i = 0; i < 2; ++i) {
      const Region region(s, "tensor");
      rank == 0 ? s.send(1, own.part(i, 1)) : s.recv(into.part(i, 1), 0);
    }
    s.compute({"summarise", {}}, {state}, {});
    {
      const Region region(s, "state");
      rank == 0 ? s.send(1, state) : s.recv(into.part(2, 1), 0);
    }
    for (int i = 0; i <= rank; ++i) s.compute({"differentiate", {}}, {gradients}, {});
    const Region region(s, "gradients");
    s.send(1 - rank, gradients);
    s.recv(into.part(3, 1), 1 - rank);
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST(ReadyGroups, AStateDoesNotWaitForTheGradientsAfterIt) {
  const auto schedules = states_then_gradients();
  EXPECT_EQ(message_groups(schedules[0]), (std::vector<int>{0, 0, -1, 0, -1, 0, 0}));
  EXPECT_EQ(ready_groups(schedules),
            (std::vector<std::vector<int>>{{0, 0, -1, 1, -1, 2, 2}, {0, 0, -1, 1, -1, -1, 2, 2}}));
}

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

TEST(Matching, PairsTheNthSendWithTheNthReceive) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 2; ++r) {
    Schedule s(r, 2);
    const Slice own = s.input("own", 4), into = s.output("into", 4);
    for (int i : {0, 1}) {
      if (r == 0) s.send(1, own.block(i, 2));
      if (r == 1) s.recv(into.block(1 - i, 2), 0);
    }
    schedules.push_back(std::move(s));
  }
  const Matching matching("example", schedules);
  EXPECT_EQ(matching.steps(), 4);
  EXPECT_EQ(matching.partner(matching.number(0, 0)), matching.number(1, 0));
  EXPECT_EQ(matching.partner(matching.number(1, 1)), matching.number(0, 1));
  EXPECT_EQ(matching.rank(3), 1);
}

}  // namespace
