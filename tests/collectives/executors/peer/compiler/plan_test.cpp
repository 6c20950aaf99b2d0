// SPDX-License-Identifier: Apache-2.0
// What is launched at once, what waits for what, and what runs beside local work.
#include "collectives/executors/peer/compiler/plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "collectives/executors/peer/compiler/program.hpp"

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
  const auto sender = compile_peer_program(schedules, 0).operations;
  ASSERT_EQ(sender.size(), 4u);
  EXPECT_EQ(sender[1].compute, 1);
  EXPECT_EQ(sender[2].waits_for, 1) << "the second send waits for what it sends";
  EXPECT_EQ(sender[3].compute, 2) << "what is aside holds up nobody";
  const auto receiver = compile_peer_program(schedules, 1).operations;
  ASSERT_EQ(receiver.size(), 3u);
  EXPECT_EQ(receiver[1].compute, 1);
  EXPECT_EQ(receiver[1].waits_for, 0);
  EXPECT_EQ(receiver[2].waits_for, 1) << "the buffer is free when the kernel has read it";
}

TEST(PeerPlan, AReceiveHoldsNoBlocksBeforeTheWorkThatIsRecordedBeforeIt) {
  Schedule zero(0, 2), one(1, 2);
  zero.send(1, zero.input("own", 8));
  const Slice made = one.scratch("made", 8), aside = one.scratch("aside", 8), came = one.output("came", 8);
  one.compute(kernel("before"), {made}, {});
  one.recv(came, 0);
  one.compute(kernel("beside"), {aside}, {});
  const auto operations = compile_peer_program(std::vector{zero, one}, 1).operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[0].compute, 0);
  EXPECT_EQ(operations[1].compute, 2);
  EXPECT_EQ(operations[2].waits_for, 0) << "not for what is recorded behind it";
  EXPECT_TRUE(operations[2].is_beside_work);
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
  auto receiver = compile_peer_program(std::vector{zero, one}, 1);
  ASSERT_EQ(receiver.operations.size(), 2u);
  const int exchange = receiver.operations[0].compute < 0 ? 0 : 1;
  ASSERT_EQ(receiver.operations[exchange].last, 2) << "both messages";
  hold_back_work(receiver, exchange);
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
  auto sender = compile_peer_program(std::vector{zero, one}, 0);
  ASSERT_EQ(sender.operations.size(), 3u);
  EXPECT_EQ(sender.operations[1].compute, -1);
  EXPECT_TRUE(sender.operations[1].is_beside_work) << "nothing waits for a send";
  hold_back_work(sender, 1);
  EXPECT_FALSE(sender.operations[1].is_beside_work);
  EXPECT_EQ(sender.operations[2].waits_for, 1) << "when another rank is in a hurry, work does";
  const auto receiver = compile_peer_program(std::vector{zero, one}, 1).operations;
  ASSERT_EQ(receiver.size(), 4u);
  EXPECT_EQ(receiver[1].compute, -1);
  EXPECT_FALSE(receiver[1].is_beside_work);
}

TEST(PeerPlan, AKernelDoesNotWaitForTheNextMessage) {
  Schedule zero(0, 2), one(1, 2);
  const Slice own = zero.input("own", 8), came = one.scratch("came", 16), used = one.output("used", 8);
  zero.send(1, own);
  zero.send(1, own);
  one.recv(came.part(0, 8), 0);
  one.recv(came.part(8, 8), 0);
  one.compute(kernel("use"), {used}, {came.part(0, 8)});
  const auto operations = compile_peer_program(std::vector{zero, one}, 1).operations;
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[1].compute, 2);
  EXPECT_EQ(operations[1].waits_for, 0);
  EXPECT_EQ(operations[0].last, 1) << "only the first message";
}

}  // namespace
