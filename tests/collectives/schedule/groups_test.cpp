// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectives/schedule/orders.hpp"

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

}  // namespace
