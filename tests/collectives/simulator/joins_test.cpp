// SPDX-License-Identifier: Apache-2.0
// Machines whose messages run in groups. What joins do where steps wait for many others is in
// simulate_test.cpp.
#include "collectives/simulator/joins.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "collectives/simulator/simulate.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

constexpr double launch = 100;  // seconds; a byte takes one

Topology grouping_machine(int ranks, bool groups = true) {
  Topology topology = uniform_machine(ranks, {.overhead_seconds = launch, .bytes_per_second = 1});
  topology.device.copy.bytes_per_second = 8;  // a copy of 4 bytes takes a second
  topology.groups = groups;
  return topology;
}

Slice message(Schedule& s, const char* name, std::int64_t bytes) {
  return s.scratch(name, bytes / element_bytes);
}

std::vector<double> rank_seconds(std::vector<Schedule> schedules, const Topology& topology) {
  return simulate(source_of(std::move(schedules)), topology).rank_seconds;
}

TEST(GroupingMachine, AGroupPaysOneLaunchWhateverItSends) {
  const auto spread = record(4, [](Schedule& s) {
    const Slice x = message(s, "x", 8);
    for (int peer = 1; peer < 4; ++peer)
      if (s.rank() == 0) s.send(peer, x);
    if (s.rank() > 0) s.recv(x, 0);
  });
  EXPECT_THAT(rank_seconds(spread, grouping_machine(4)),
              ElementsAre(launch + 24, launch + 8, launch + 16, launch + 24));
  EXPECT_THAT(rank_seconds(spread, grouping_machine(4, false)),
              ElementsAre(3 * launch + 24, launch + 8, 2 * launch + 16, 3 * launch + 24));
}

TEST(GroupingMachine, AMessageThatWaitsForAnotherPaysALaunchOfItsOwn) {
  const auto chain = record(3, [](Schedule& s) {
    const Slice x = message(s, "x", 8);
    if (s.rank() > 0) s.recv(x, s.rank() - 1);
    if (s.rank() < 2) s.send(s.rank() + 1, x);
  });
  EXPECT_EQ(rank_seconds(chain, grouping_machine(3)).back(), 2 * (launch + 8));
}

TEST(GroupingMachine, AStepWaitsForAllThatItsGroupReceives) {
  const auto two_come = record(3, [](Schedule& s) {
    const Slice small = message(s, "small", 4), large = message(s, "large", 400);
    if (s.rank() == 1) s.send(0, small);
    if (s.rank() == 2) s.send(0, large);
    if (s.rank() > 0) return;
    s.recv(small, 1);
    s.recv(large, 2);
    s.copy(message(s, "copied", 4), small);
  });
  EXPECT_EQ(rank_seconds(two_come, grouping_machine(3)).front(), launch + 404 + 1);
  EXPECT_EQ(rank_seconds(two_come, grouping_machine(3, false)).front(), 2 * launch + 404);
}

/// Rank 1 receives what rank 0 sends in its second group only. Rank 0 does not wait for that.
TEST(GroupingMachine, AGroupDoesNotWaitForTheReceiversOfWhatItSends) {
  const auto text = record(4, [](Schedule& s) {
    const Slice x = message(s, "x", 400), y = message(s, "y", 4), z = message(s, "z", 4);
    if (s.rank() == 2) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 2);
    if (s.rank() == 1) s.send(2, x);
    if (s.rank() == 2) s.recv(x, 1);
    if (s.rank() == 0) s.send(1, y);
    if (s.rank() == 1) s.recv(y, 0);
    if (s.rank() == 3) s.send(0, z);
    if (s.rank() == 0) s.recv(z, 3);
    if (s.rank() == 0) s.send(3, z);
    if (s.rank() == 3) s.recv(z, 0);
  });
  EXPECT_EQ(rank_seconds(text, grouping_machine(4))[3], 2 * (launch + 4));
}

}  // namespace
