// SPDX-License-Identifier: Apache-2.0
// Machines that stream: what runs in one train, what waits for its end, and what is shared under
// way. Closed forms of whole collectives on them are in closed_forms_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "collectives/simulator/simulate.hpp"
#include "tests/collectives/simulator/uniform_machine.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;

constexpr double latency = 100, length = 40;  // of a message, in seconds; a second a byte

/// Kernels take as many seconds as they have operations, other local steps no time.
Topology streaming_machine(int ranks, double latency_seconds = latency) {
  Topology topology = uniform_machine(ranks, {.latency_seconds = latency_seconds, .bytes_per_second = 1});
  topology.device.kernel.flops_per_second = 1;
  topology.streams = true;
  return topology;
}

Slice message(Schedule& s, const char* name) {
  return s.scratch(name, static_cast<std::int64_t>(length) / element_bytes);
}

void work(Schedule& s, double seconds, const Slice& writes, const Slice& reads) {
  s.compute({.name = "work", .body = nullptr, .flops = seconds}, {writes}, {reads});
}

std::vector<double> rank_seconds(std::vector<Schedule> schedules, const Topology& topology) {
  return simulate(source_of(std::move(schedules)), topology).rank_seconds;
}

/// A chain in which every inner rank passes on what `step` makes of what came.
template <typename Step>
std::vector<Schedule> chain(int ranks, const Step& step) {
  return record(ranks, [&](Schedule& s) {
    const Slice came = message(s, "came"), made = message(s, "made");
    if (s.rank() > 0) s.recv(came, s.rank() - 1);
    if (0 < s.rank() && s.rank() + 1 < ranks) step(s, made, came);
    if (s.rank() + 1 < ranks) s.send(s.rank() + 1, made);
  });
}

TEST(StreamingMachine, AComputeWaitsForTheEndOfAMessage) {
  const auto text = [](Schedule& s) {
    const Slice x = message(s, "x"), y = message(s, "y");
    if (s.rank() == 0) s.send(1, x);
    if (s.rank() == 1) s.recv(x, 0);
    if (s.rank() == 1) work(s, 50, y, x);
  };
  EXPECT_THAT(rank_seconds(record(2, text), streaming_machine(2)),
              ElementsAre(length, latency + length + 50));
}

/// A fence behind many messages stands for the same waits as one behind few: each message more
/// takes its four seconds on the wire. A message behind it follows their heads, a kernel their
/// ends.
TEST(StreamingMachine, AFenceIsTheSameBehindAnyNumberOfMessages) {
  const auto seconds = [](int messages) {
    const auto text = [messages](Schedule& s) {
      const Slice x = s.scratch("x", messages), y = s.scratch("y", 2), z = s.scratch("z", 1);
      for (int i = 0; i < messages; ++i) s.rank() == 0 ? s.send(1, x.part(i, 1)) : s.recv(x.part(i, 1), 0);
      s.fence();
      work(s, 50, z, {});
      for (int i = 0; i < 2; ++i) s.rank() == 0 ? s.recv(y.part(i, 1), 1) : s.send(0, y.part(i, 1));
    };
    return rank_seconds(record(2, text), streaming_machine(2));
  };
  const auto few = seconds(3);
  EXPECT_EQ(few[1], latency + 4 * 3 + 50) << "a kernel waits for the ends";
  EXPECT_LT(few[0], 2 * latency + 4 * 3 + 50) << "messages do not wait for it";
  for (const int many : {7, 8, 20})
    EXPECT_THAT(seconds(many), ElementsAre(few[0] + 4 * (many - 3), few[1] + 4 * (many - 3)));
}

TEST(StreamingMachine, AMessageWaitsForTheEndOfACompute) {
  const auto through_kernels = [](Schedule& s, const Slice& made, const Slice& came) {
    work(s, 50, made, came);
  };
  for (int P : {2, 3, 7})
    EXPECT_DOUBLE_EQ(rank_seconds(chain(P, through_kernels), streaming_machine(P)).back(),
                     (P - 1) * (latency + length) + (P - 2) * 50)
        << "no train passes a kernel";
}

TEST(StreamingMachine, ATrainIsAsLongAsItsSlowestCopy) {
  for (double copy_seconds : {10, 40, 80})
    for (int P : {2, 3, 7}) {
      Topology topology = streaming_machine(P);
      topology.device.copy.bytes_per_second = 2 * length / copy_seconds;  // read and written
      const auto copies = [](Schedule& s, const Slice& made, const Slice& came) { s.copy(made, came); };
      EXPECT_DOUBLE_EQ(rank_seconds(chain(P, copies), topology).back(),
                       (P - 1) * latency + (P == 2 ? length : std::max(length, copy_seconds)));
      topology.streams = false;
      EXPECT_DOUBLE_EQ(rank_seconds(chain(P, copies), topology).back(),
                       (P - 1) * (latency + length) + (P - 2) * copy_seconds);
    }
}

TEST(StreamingMachine, ATrainIsAsLongAsItsSlowestCombine) {
  const Shape shape{.heads = 1, .d_k = 5, .d_v = 2};
  const double bytes = static_cast<double>(shape.state_bytes());
  for (double combine_seconds : {10, 80})
    for (int P : {3, 7}) {
      Topology topology = streaming_machine(P);
      topology.device.combine.flops_per_second =
          2 * static_cast<double>(shape.state_elements()) / combine_seconds;
      const ScheduleSource scan = source_of(find_collective("ring_scan"), shape, {.ranks = P});
      EXPECT_DOUBLE_EQ(simulate(scan, topology).seconds,
                       (P - 1) * latency + std::max(bytes, combine_seconds));
    }
}

/// A copy of what a long message brings, and of what is there soon after the message's head: a
/// short message that waits for the copy is as late as the long one's tail.
TEST(StreamingMachine, WhatWaitsForTwoEndsNoSoonerThanEither) {
  constexpr double soon = 10;
  const auto text = [](Schedule& s) {
    const Slice x = s.scratch("x", 20), y = s.scratch("y", 20), made = s.scratch("made", 5);
    const Slice came = x.part(0, 15), own = x.part(15, 5), first = y.part(0, 1);
    if (s.rank() == 0) s.send(1, came);
    if (s.rank() == 1) {
      s.recv(came, 0);
      work(s, latency + soon, made, y);
      s.copy(own, made);
      s.copy(y, x);
      s.send(2, first);
    }
    if (s.rank() == 2) s.recv(first, 1);
  };
  EXPECT_THAT(rank_seconds(record(3, text), streaming_machine(3)),
              ElementsAre(60, latency + 60, latency + 60 + latency));
}

/// Every message of a chain passes the node's memory for S seconds: a train of P-1 of them one
/// behind the other, where that takes longer than their heads.
TEST(StreamingMachine, ANodesMemoryIsPassedByOneMessageOfATrainAfterTheOther) {
  const auto copies = [](Schedule& s, const Slice& made, const Slice& came) { s.copy(made, came); };
  constexpr double short_latency = 10;
  for (int P : {2, 3, 7}) {
    Topology topology = streaming_machine(P, short_latency);
    const auto seconds = [&](double shared_seconds) {
      topology.intra_node.node_bytes_per_second = length / shared_seconds;
      return rank_seconds(chain(P, copies), topology).back();
    };
    EXPECT_DOUBLE_EQ(seconds(80), (P - 1) * 80 + short_latency) << "slower than a port";
    EXPECT_DOUBLE_EQ(seconds(20), std::max((P - 1) * 20, (P - 2) * 20 + 40) + short_latency)
        << "faster than a port, slower than a head";
    EXPECT_DOUBLE_EQ(seconds(5), (P - 1) * short_latency + length) << "no limit";
  }
}

}  // namespace
