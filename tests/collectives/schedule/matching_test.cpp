// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collectives/schedule/orders.hpp"

namespace {

using namespace baton;

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
