// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::AllOf;
using testing::HasSubstr;

/// Two ranks with an input "own" and an output "into" of 4 elements each, recorded by
/// `record(schedule)`.
template <typename Record>
std::vector<Schedule> two_ranks(Record record) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 2; ++r) {
    Schedule s(r, 2);
    s.input("own", 4);
    s.output("into", 4, false);
    record(s);
    schedules.push_back(std::move(s));
  }
  return schedules;
}

std::string error_of(const std::vector<Schedule>& schedules) {
  try {
    check("example", schedules);
  } catch (const ScheduleError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Check, CountsBytesMessagesAndHops) {
  const auto counts = check("example", two_ranks([](Schedule& s) {
                              if (s.rank() == 0) s.send(1, s.buffer("own"));
                              if (s.rank() == 1) s.recv(s.buffer("into"), 0);
                            }));
  EXPECT_EQ(counts.ranks[0].sent_bytes, 16);
  EXPECT_EQ(counts.ranks[1].received_bytes, 16);
  EXPECT_EQ(counts.ranks[0].messages, 1);
  EXPECT_EQ(counts.busiest_sent_bytes(), 16);
  EXPECT_EQ(counts.hops, 1);
}

TEST(Check, RejectsASendWithoutItsReceive) {
  const auto error = error_of(two_ranks([](Schedule& s) {
    if (s.rank() == 0) s.send(1, s.buffer("own"));
  }));
  EXPECT_THAT(
      error, AllOf(HasSubstr("example: rank 0, step 0 (send, check_test.cpp:"), HasSubstr("has no receive")));
}

TEST(Check, RejectsAReceiveWithoutItsSend) {
  const auto error = error_of(two_ranks([](Schedule& s) {
    if (s.rank() == 1) s.recv(s.buffer("into"), 0);
  }));
  EXPECT_THAT(error,
              AllOf(HasSubstr("example: rank 1, step 0 (recv, check_test.cpp:"), HasSubstr("has no send")));
}

TEST(Check, RejectsUnequalSizes) {
  const auto error = error_of(two_ranks([](Schedule& s) {
    if (s.rank() == 0) s.send(1, s.buffer("own"));
    if (s.rank() == 1) s.recv(s.buffer("into").part(0, 3), 0);
  }));
  EXPECT_THAT(error, AllOf(HasSubstr("example: rank 0, step 0 (send"), HasSubstr("sends 4 elements"),
                           HasSubstr("rank 1, step 0 (recv"), HasSubstr("receives 3")));
}

TEST(Check, RejectsACycle) {
  // Each rank passes on what it has yet to receive.
  const auto error = error_of(two_ranks([](Schedule& s) {
    s.recv(s.buffer("into"), 1 - s.rank());
    s.send(1 - s.rank(), s.buffer("into"));
  }));
  EXPECT_THAT(error, AllOf(HasSubstr("deadlock"), HasSubstr("example: rank"),
                           HasSubstr("step 1 (send, check_test.cpp:")));
}

TEST(Check, RejectsACycleThatOnlyGroupsClose) {
  // Rank 0 waits for an answer to its last message before it sends the one recorded ahead of that.
  // In free order the last message simply goes first; in groups it goes out with the message that
  // waits for the answer.
  const auto error = error_of(two_ranks([](Schedule& s) {
    const Slice own = s.buffer("own"), into = s.buffer("into");
    if (s.rank() == 0) {
      s.recv(into.part(0, 1), 1);  // group 0: the answer
      s.send(1, into.part(0, 1));  // group 1
      s.send(1, own.part(0, 1));   // group 1: what is answered
    } else {
      s.recv(into.part(0, 1), 0);  // group 0
      s.recv(into.part(1, 1), 0);  // group 0
      s.send(0, into.part(1, 1));  // group 1
    }
  }));
  EXPECT_THAT(error, HasSubstr("deadlock when messages run in groups: example: rank"));
}

TEST(Check, RejectsAnOutputThatIsNotCovered) {
  std::vector<Schedule> schedules;
  schedules.emplace_back(0, 1);
  Schedule& s = schedules.front();
  const Slice own = s.input("own", 4), into = s.output("into", 4);
  s.copy(into.part(0, 3), own.part(0, 3));
  EXPECT_THAT(error_of(schedules), AllOf(HasSubstr("example: rank 0, step 1"), HasSubstr("check_test.cpp:"),
                                         HasSubstr("nothing wrote 'into' from element 3 on")));
}

TEST(Check, CountsTheLongestChainAsHops) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 4; ++r) {
    Schedule s(r, 4);
    const Slice own = s.input("own", 2), into = s.output("into", 2, false);
    if (r > 0) s.recv(into, r - 1);
    if (r < 3) s.send(r + 1, r == 0 ? own : into);
    schedules.push_back(std::move(s));
  }
  EXPECT_EQ(check("chain", schedules).hops, 3);
}

TEST(balance, is_the_most_operations_over_the_mean) {
  EXPECT_EQ(balance({3, 1, 2}), 1.5);
  EXPECT_EQ(balance({7}), 1.0);
  EXPECT_EQ(balance({0, 0}), std::nullopt);
}

}  // namespace
