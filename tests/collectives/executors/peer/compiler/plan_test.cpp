// SPDX-License-Identifier: Apache-2.0
// What is launched at once, what waits for what, and which exchanges overlap compute steps on which
// blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/executors/peer/compiler/compile.hpp"
#include "collectives/executors/peer/compiler/order.hpp"
#include "collectives/executors/peer/device/instruction.hpp"

namespace {

using namespace baton;

Kernel kernel(const char* name) {
  return {.name = name, .body = [](const HostOperands&) {}};
}

TEST(PeerPlan, ComputeStepsCutInstructionsWhereTheyMust) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 8), made = zero.scratch("made", 8), got = zero.output("got", 8, false);
  const Slice came = one.scratch("came", 8), used = one.output("used", 8);
  zero.send(1, own);
  zero.compute(kernel("make"), {made}, {own});
  zero.compute(kernel("aside"), {got}, {own});
  zero.send(1, made);
  one.recv(came, 0);
  one.compute(kernel("use"), {used}, {came});
  one.recv(came, 0);
  const std::vector<Schedule> schedules{zero, one};
  const auto sender = compile_peer_programs(schedules)[0].operations;
  ASSERT_EQ(sender.size(), 4u);
  EXPECT_EQ(sender[1].steps, std::vector{1});
  EXPECT_EQ(sender[2].waits_for, 1) << "the second send waits for what it sends";
  EXPECT_EQ(sender[3].steps, std::vector{2}) << "what is aside holds up nobody";
  const auto receiver = compile_peer_programs(schedules)[1].operations;
  ASSERT_EQ(receiver.size(), 3u);
  EXPECT_EQ(receiver[1].steps, std::vector{1});
  EXPECT_EQ(receiver[1].waits_for, 0);
  EXPECT_EQ(receiver[2].waits_for, 1) << "the buffer is free when the kernel has read it";
}

TEST(PeerPlan, AReceiveHoldsNoBlocksBeforeTheWorkThatIsRecordedBeforeIt) {
  Schedule zero(0, 2), one(1, 2);
  zero.send(1, zero.input("own", 8));
  zero.compute(kernel("aside"), {zero.scratch("aside", 8)}, {});
  const Slice made = one.scratch("made", 8), aside = one.scratch("aside", 8), came = one.output("came", 8);
  one.compute(kernel("before"), {made}, {});
  one.recv(came, 0);
  one.compute(kernel("beside"), {aside}, {});
  const auto operations = compile_peer_programs(std::vector{zero, one})[1].operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].steps, std::vector{0});
  EXPECT_EQ(operations[1].steps, std::vector{2});
  EXPECT_EQ(operations[2].waits_for, 0) << "not for what is recorded behind it";
  EXPECT_TRUE(operations[2].overlaps_compute);
}

/// The first message is kept in memory that is free once the first kernel has read it, the second
/// one is needed at once, the third is sent last.
TEST(PeerPlan, MessagesAreReceivedInTheOrderOfRecording) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 8);
  for (int i = 0; i < 3; ++i) zero.send(1, own);
  const Slice came = one.scratch("came", 8), last = one.output("last", 8), used = one.output("used", 16);
  one.recv(came, 0);
  one.compute(kernel("use"), {used.part(0, 8)}, {came});
  one.recv(came, 0);
  one.compute(kernel("use again"), {used.part(8, 8)}, {came});
  one.recv(last, 0);
  EXPECT_EQ(order_peer_steps(std::vector{zero, one})[1], (std::vector{0, 1, 2, 3, 4}));
}

TEST(PeerPlan, WorkThatALaterMessageMayNeedIsNotHeldBack) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 8), made = one.scratch("made", 8);
  const Slice first = one.output("first", 8, false), second = one.output("second", 8, false);
  zero.send(1, own);
  zero.send(1, own);
  one.recv(first, 0);
  one.compute(kernel("between"), {made}, {});
  one.recv(second, 0);
  const auto receiver = compile_peer_programs(std::vector{zero, one})[1];
  ASSERT_EQ(receiver.operations.size(), 2u);
  const int exchange = receiver.operations[0].computes ? 1 : 0;
  ASSERT_EQ(receiver.operations[exchange].last, 2) << "both messages";
  EXPECT_FALSE(receiver.operations[exchange].overlaps_compute) << "the sender has nothing to overlap";
  EXPECT_EQ(receiver.operations[1 - exchange].waits_for, -1);
}

TEST(PeerPlan, WhatComputeStepsWaitForIsNotBesideThem) {
  Schedule zero(0, 2), one(1, 2);
  const Slice came = one.scratch("came", 8), used = one.output("used", 8);
  const Slice made = zero.scratch("made", 8), aside = zero.output("aside", 8, false);
  zero.compute(kernel("make"), {made}, {});
  zero.send(1, made);
  zero.compute(kernel("aside"), {aside}, {});
  one.compute(kernel("make"), {used}, {});
  one.recv(came, 0);
  one.compute(kernel("use"), {used}, {came});
  one.compute(kernel("more"), {used}, {used});
  const auto sender = compile_peer_programs(std::vector{zero, one})[0].operations;
  ASSERT_EQ(sender.size(), 3u);
  EXPECT_FALSE(sender[1].computes);
  EXPECT_FALSE(sender[1].overlaps_compute) << "the receiver overlaps nothing";
  EXPECT_EQ(sender[2].waits_for, 1) << "when another rank is in a hurry, work waits";
  const auto receiver = compile_peer_programs(std::vector{zero, one})[1].operations;
  ASSERT_EQ(receiver.size(), 4u);
  EXPECT_FALSE(receiver[1].computes);
  EXPECT_FALSE(receiver[1].overlaps_compute);
}

TEST(PeerPlan, AKernelDoesNotWaitForTheNextMessage) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 8), came = one.scratch("came", 16), used = one.output("used", 8);
  zero.send(1, own);
  zero.send(1, own);
  one.recv(came.part(0, 8), 0);
  one.recv(came.part(8, 8), 0);
  one.compute(kernel("use"), {used}, {came.part(0, 8)});
  const auto operations = compile_peer_programs(std::vector{zero, one})[1].operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[1].steps, std::vector{2});
  EXPECT_EQ(operations[1].waits_for, 0);
  EXPECT_EQ(operations[0].last, 1) << "only the first message";
}

/// A rank that exchanges, with or without work that the exchange can overlap.
Schedule exchanging(int rank, bool overlaps) {
  Schedule s(rank, 2);
  const Slice own = s.input("own", 8), into = s.output("into", 8), made = s.scratch("made", 8);
  s.send(1 - rank, own);
  s.recv(into, 1 - rank);
  s.compute(kernel("beside"), {made}, {overlaps ? own : into});
  return s;
}

const LaunchOperation& exchange_of(const PeerProgram& program) {
  return program.operations[program.operations[0].computes ? 1 : 0];
}

TEST(PeerPlan, AnExchangeOverlapsComputeOnAllRanksOrOnNone) {
  for (bool zero : {false, true})
    for (bool one : {false, true}) {
      const auto programs = compile_peer_programs(std::vector{exchanging(0, zero), exchanging(1, one)});
      for (const PeerProgram& program : programs) {
        EXPECT_EQ(exchange_of(program).overlaps_compute, zero && one);
        EXPECT_EQ(program.overlaps_compute, zero && one);
      }
    }
}

TEST(PeerPlan, RanksWithUnlikeNumbersOfExchangesKeepTheirOwnChoice) {
  Schedule zero = exchanging(0, true), one = exchanging(1, true);
  const Slice later = one.scratch("later", 8);
  one.compute(kernel("between"), {later}, {Slice{1, 0, 8}});
  one.send(0, later);
  zero.recv(zero.scratch("last", 8), 1);
  const auto programs = compile_peer_programs(std::vector{zero, one});
  const auto exchanges = [](const PeerProgram& program) {
    return std::count_if(program.operations.begin(), program.operations.end(),
                         [](const LaunchOperation& operation) { return !operation.computes; });
  };
  ASSERT_NE(exchanges(programs[0]), exchanges(programs[1]));
  EXPECT_TRUE(programs[0].overlaps_compute);
  EXPECT_EQ(programs[0].overlaps_compute, programs[1].overlaps_compute) << "all ranks know it";
}

TEST(PeerPlan, AnExchangeThatOverlapsComputeLeavesItMultiprocessors) {
  const auto overlapped = compile_peer_programs(std::vector{exchanging(0, true), exchanging(1, true)})[0];
  const auto alone = compile_peer_programs(std::vector{exchanging(0, false), exchanging(1, true)})[0];
  const PeerBlocks blocks{.alone = 132, .overlapping = 4};
  EXPECT_EQ(blocks.of(exchange_of(overlapped)), 4u);
  EXPECT_EQ(blocks.of(exchange_of(alone)), 132u);
}

TEST(PeerPlan, AllRanksKnowTheWidestProgram) {
  Schedule zero(0, 2), one(1, 2);
  zero.send(1, zero.input("own", 64));
  one.recv(one.output("into", 64), 0);
  one.copy(one.output("copied", 64), one.input("own", 64));
  const auto programs = compile_peer_programs(std::vector{zero, one});
  EXPECT_EQ(programs[0].width, 32);
  EXPECT_EQ(programs[1].width, 32);
}

}  // namespace
