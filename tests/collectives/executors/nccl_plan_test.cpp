// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/nccl_plan.hpp"

#include <gtest/gtest.h>

#include <string>

#include "collectives/collective.hpp"

namespace {

using namespace baton;

/// The plan as one word an operation: its verb, a group's messages in brackets, compute steps with an asterisk, and behind
/// a slash the operation waited for.
std::string text(const Schedule& schedule) {
  std::string text;
  for (const NcclOperation& operation : nccl_plan(schedule)) {
    std::string word;
    for (int step : operation.steps)
      word += (word.empty() ? "" : "+") + std::string(to_string(schedule.steps()[step].verb));
    if (operation.is_group) word = "[" + word + "]";
    if (operation.computes) word += "*";
    if (operation.waits_for >= 0) word += "/" + std::to_string(operation.waits_for);
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

Schedule all_scan(int rank, int blocks) {
  return build(find_collective("all_scan"), Shape{1, 8, 4, 1}, rank, {.ranks = 4, .blocks = blocks});
}

TEST(NcclPlan, AMiddleRankSendsABlockWhileItReceivesTheNext) {
  EXPECT_EQ(text(all_scan(1, 3)), "[recv] combine [send+recv] combine [send+recv] combine [send]");
}

TEST(NcclPlan, TheFirstRankSendsAllBlocksAtOnce) { EXPECT_EQ(text(all_scan(0, 3)), "[send+send+send]"); }

/// A rank that computes what it sends, computes beside it, and combines what comes with what it has computed.
Schedule with_local_work() {
  Schedule s(1, 3);
  const Slice own = s.scratch("own", 5), beside = s.scratch("beside", 1), into = s.output("into", 4);
  const Map map{own.part(0, 1), own.part(1, 4), 4};
  s.compute({"summarise", {}}, {own}, {});
  s.recv(into, 0);
  s.send(2, map.state);
  s.compute({"beside", {}}, {beside}, {});
  const Map came{{}, into, 4};
  s.combine(came, came, map);
  s.compute({"finish", {}}, {beside}, {into, beside});
  return s;
}

TEST(NcclPlan, LocalWorkIsAnotherStreamsAndEventsCrossOnce) {
  // The combine needs the summary too, but the group before it has waited for that.
  EXPECT_EQ(text(with_local_work()), "compute* compute* [recv+send]/0 combine compute*/3");
}

TEST(NcclPlan, OnlyWhatIsWaitedForLeavesAnEvent) {
  const auto plan = nccl_plan(with_local_work());
  std::string waited_for;
  for (const NcclOperation& operation : plan) waited_for += operation.is_waited_for ? '1' : '0';
  EXPECT_EQ(waited_for, "10010");
}

}  // namespace
