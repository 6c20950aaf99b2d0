// SPDX-License-Identifier: Apache-2.0
// The memory of a heap, which counts where a row asks whether it fits.
#include "collectives/executors/peer/device/instruction.hpp"

#include <gtest/gtest.h>

#include "collectives/executors/peer/compiler/order.hpp"

namespace {

using namespace baton;

TEST(PeerHeap, IsAllocatedWithTheInboxesOfAllGenerations) {
  constexpr std::int64_t gibibyte = std::int64_t{1} << 30, packets = gibibyte / packet_bytes;
  EXPECT_EQ(allocated_heap(2, packets, 1, 132), 4 * gibibyte);  // three inboxes, and flags
  EXPECT_EQ(allocated_heap(2, packets / 2, 1, 132), 2 * gibibyte);
  EXPECT_EQ(allocated_heap(2, 16, 1, 132), std::size_t{64} << 20);
}

TEST(PeerHeap, GrowsWithWhatTheBusiestRankReceives) {
  constexpr std::int64_t count = 1 << 20;
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 3; ++rank) {
    Schedule& schedule = schedules.emplace_back(rank, 3);
    const Slice x = schedule.scratch("x", count), y = schedule.output("y", 2 * count, false);
    if (rank > 0) schedule.send(0, x);
    for (int from = 1; rank == 0 && from < 3; ++from) schedule.recv(y.part((from - 1) * count, count), from);
  }
  const PeerInboxes inboxes(schedules, 4);
  EXPECT_EQ(inboxes.packets(), 2 * count / 4);
  EXPECT_EQ(inboxes.messages(), 2);
}

}  // namespace
