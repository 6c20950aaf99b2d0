// SPDX-License-Identifier: Apache-2.0
// The memory of a heap, which counts where a row asks whether it fits.
#include "collectives/executors/peer/device/instruction.hpp"

#include <gtest/gtest.h>

#include "collectives/executors/peer/compiler/order.hpp"

namespace {

using namespace baton;

TEST(PeerHeap, IsAllocatedWithTheInboxesOfAllGenerations) {
  constexpr std::int64_t gibibyte = std::int64_t{1} << 30, packets = gibibyte / packet_bytes;
  EXPECT_EQ(allocated_heap(2, packets), 4 * gibibyte);  // three inboxes, and flags of rounds
  EXPECT_EQ(allocated_heap(2, packets / 2), 2 * gibibyte);
  EXPECT_EQ(allocated_heap(2, 16), std::size_t{64} << 20);
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
  EXPECT_EQ(PeerInboxes(schedules, 4).packets(), 2 * count / 4);
}

}  // namespace
