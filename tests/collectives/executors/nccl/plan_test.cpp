// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/nccl/plan.hpp"

#include <gtest/gtest.h>

#include <string>

#include "collectives/collective.hpp"
#include "collectives/schedule/check.hpp"
#include "collectives/schedule/orders.hpp"

namespace {

using namespace baton;

/// The plan as one word an operation: its verb, a group's messages in brackets, compute steps with
/// an asterisk, and behind a slash the operation waited for.
std::string plan_text(const Schedule& schedule) {
  std::string text;
  for (const LaunchOperation& operation : nccl_plan(schedule, message_groups(schedule))) {
    std::string word;
    for (int step : operation.steps)
      word += (word.empty() ? "" : "+") + std::string(to_string(schedule.steps()[step].verb));
    if (schedule.steps()[operation.steps[0]].is_message()) word = "[" + word + "]";
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
  EXPECT_EQ(plan_text(all_scan(1, 3)), "[recv] combine [send+recv] combine [send+recv] combine [send]");
}

TEST(NcclPlan, TheFirstRankSendsAllBlocksAtOnce) { EXPECT_EQ(plan_text(all_scan(0, 3)), "[send+send+send]"); }

/// A rank that computes what it sends, computes beside it, and combines what comes with what it has
/// computed.
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
  EXPECT_EQ(plan_text(with_local_work()), "compute* compute* [recv+send]/0 combine compute*/3");
}

TEST(NcclPlan, AnOperationWaitsForTheOtherStreamOnly) {
  const Schedule schedule = with_local_work();
  const auto plan = nccl_plan(schedule, message_groups(schedule));
  std::string waited_for(plan.size(), '0');
  for (const LaunchOperation& operation : plan) {
    if (operation.waits_for < 0) continue;
    waited_for[operation.waits_for] = '1';
    EXPECT_NE(plan[operation.waits_for].computes, operation.computes);
  }
  EXPECT_EQ(waited_for, "10010");
}

TEST(NcclPlan, AReceiveHoldsNothingBeforeTheWorkThatIsRecordedBeforeIt) {
  Schedule s(1, 2);
  const Slice made = s.scratch("made", 8), came = s.output("came", 8), own = s.input("own", 8);
  s.send(0, own);
  s.compute({"before", {}}, {made}, {});
  s.send(0, own);
  s.recv(came, 0);
  s.compute({"beside", {}}, {made}, {made});
  const std::vector<int> groups{0, -1, 1, 1, -1};
  std::string waits;
  for (const LaunchOperation& operation : nccl_plan(s, groups))
    waits += (operation.computes ? "*" : "") + std::to_string(operation.waits_for) + " ";
  EXPECT_EQ(waits, "*-1 *-1 -1 0 ") << "what only sends goes at once";
}

/// Rank 0 sends two messages and receives an answer that needs both, all three independent to
/// itself.
std::vector<Schedule> question_and_answer() {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank) {
    Schedule s(rank, 2);
    const Slice own = s.input("own", 2), into = s.output("into", 2);
    if (rank == 0) {
      s.send(1, own.part(0, 1));
      s.send(1, own.part(1, 1));
      s.recv(into, 1);
    } else {
      s.recv(into.part(0, 1), 0);
      s.recv(into.part(1, 1), 0);
      s.send(0, into);
    }
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST(NcclGroups, AreFinerWhereAMessageWouldWaitBesideOneThatItNeeds) {
  // NCCL runs the first send and the receive together, and the second send only then: seen to hang.
  const auto schedules = question_and_answer();
  EXPECT_NO_THROW(check("question and answer", schedules));
  EXPECT_EQ(nccl_groups(schedules), (std::vector<std::vector<int>>{{0, 1, 2}, {0, 1, 2}}));
}

/// Every split of a shape over some ranks that can make a difference to groups.
std::vector<Split> splits(int ranks) {
  std::vector<Split> all;
  for (int ranks_per_node : {0, 2, 3})
    for (int blocks : {1, 3, 16})
      for (Direction direction : {Direction::forward, Direction::reverse})
        all.push_back(
            {.ranks = ranks, .blocks = blocks, .ranks_per_node = ranks_per_node, .direction = direction});
  return all;
}

/// NCCL's own order within groups, once more, and for whatever was chosen.
bool can_be_run(const std::vector<Schedule>& schedules) {
  std::vector<std::vector<int>> parts = nccl_groups(schedules);
  if (parts.empty()) return false;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank)
    parts[rank] = parts_of(schedules[rank], parts[rank]);
  return progresses_in_groups(schedules, parts);
}

void expect_groups(const Collective& collective, const Shape& shape, int ranks) {
  for (const Split& split : splits(ranks)) {
    if (split.direction == Direction::reverse && collective.kind != Kind::exclusive_scan) continue;
    EXPECT_TRUE(can_be_run(build_all(collective, shape, split)))
        << collective.name << ", " << ranks << " ranks, " << split.ranks_per_node << " a node, "
        << split.blocks << " blocks";
  }
}

TEST(NcclGroups, CanBeHadForEveryCollective) {
  for (const Collective* collective : collectives()) {
    for (int ranks : {2, 3, 4, 8}) expect_groups(*collective, {2, 5, 3, 4}, ranks);
    for (int ranks : {2, 3, 4, 8})
      expect_groups(*collective, {1, 1, 2, 1}, ranks);  // a single row has one owner
  }
}

TEST(NcclGroups, AreThoseOfTheRuleWhereThatRuns) {
  const auto schedules = build_all(find_collective("two_shot"), Shape{1, 8, 4, 1}, {.ranks = 4});
  const auto groups = nccl_groups(schedules);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(groups[rank], message_groups(schedules[rank])) << rank;
}

}  // namespace
