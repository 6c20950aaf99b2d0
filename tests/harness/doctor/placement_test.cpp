// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/doctor/judges.hpp"
#include "tests/harness/doctor/made_up.hpp"

namespace baton::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Binding, UnboundRanksAreNamed) {
  Readings readings = calm(2);
  for (RankReadings& rank : readings.ranks) rank.cores = {0, 1};
  const auto findings = judge_binding(readings);
  EXPECT_THAT(whats(findings, "binding"),
              ElementsAre(HasSubstr(
                  "ranks 0 and 1 are not bound to cores of their own: each may run on cores 0 and 1")));
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1));
}

TEST(Binding, OneUnboundRankAloneIsNamed) {
  Readings readings = calm(1);
  readings.hosts[0].cores.push_back(made_up_core(1));
  EXPECT_THAT(judge_binding(readings), IsEmpty());
  readings.ranks[0].cores = {0, 1};
  EXPECT_THAT(whats(judge_binding(readings), "binding"), ElementsAre(HasSubstr("rank 0 is not bound")));
}

TEST(Binding, CoresOfTheirOwnAreFine) {
  Readings readings = calm(4);
  readings.ranks.resize(2);
  readings.ranks[0].cores = {0, 1};
  readings.ranks[1].cores = {2, 3};
  EXPECT_THAT(judge_binding(readings), IsEmpty());
}

TEST(Binding, MoreRanksThanCoresAreNamed) {
  Readings readings = calm(3);
  readings.hosts[0].cores.pop_back();
  for (RankReadings& rank : readings.ranks) rank.cores = {0, 1};
  const auto findings = judge_binding(readings);
  EXPECT_THAT(whats(findings, "binding"), ElementsAre(HasSubstr("3 ranks share 2 cores")));
  EXPECT_THAT(findings[0].advice, HasSubstr("at most 2 ranks"));
  EXPECT_TRUE(is_crowded(readings));
  readings.hosts[0].cores[1].physical = 0;
  EXPECT_THAT(whats(judge_binding(readings), "binding"), ElementsAre(HasSubstr("3 ranks share 1 core")))
      << "hyperthreads of it";
}

TEST(Binding, RanksOnOneCoreAreNamed) {
  Readings readings = calm(3);
  readings.ranks[2].cores = {1};
  EXPECT_THAT(whats(judge_binding(readings), "binding"), ElementsAre(HasSubstr("3 ranks share 2 cores")));
  readings = calm(4);
  readings.ranks[3].cores = {2, 3};  // as many cores as ranks, and yet
  readings.ranks[2].cores = {1};
  const auto findings = judge_binding(readings);
  EXPECT_THAT(whats(findings, "binding"), ElementsAre(HasSubstr("ranks 1 and 2 share core 1")));
  EXPECT_THAT(findings[0].advice, HasSubstr("--bind-to core"));
}

TEST(Binding, HyperthreadsOfOneCoreAreNamed) {
  Readings readings = calm(2);
  readings.hosts[0].cores[1].physical = 0;
  const auto findings = judge_binding(readings);
  EXPECT_THAT(whats(findings, "binding"),
              ElementsAre(AllOf(HasSubstr("ranks 0 and 1 share core 0"), HasSubstr("hyperthread"))));
  EXPECT_THAT(findings[0].advice, HasSubstr("at most 1 rank"));
}

TEST(Binding, BothHyperthreadsOfAnOwnCoreAreFine) {
  Readings readings = calm(4);
  readings.hosts[0].cores[2].physical = 0;
  readings.hosts[0].cores[3].physical = 1;
  readings.ranks.resize(2);
  readings.ranks[0].cores = {0, 2};
  readings.ranks[1].cores = {1, 3};
  EXPECT_THAT(judge_binding(readings), IsEmpty());
}

TEST(Binding, MemoryOfAnotherNodeIsNamed) {
  Readings readings = calm(2);
  readings.ranks[1].memory_node = 1;
  EXPECT_THAT(whats(judge_binding(readings), "binding"),
              ElementsAre(HasSubstr("the memory of rank 1 is on NUMA node 1, its core 1 on node 0")));
  readings.ranks[1].memory_node = -1;
  EXPECT_THAT(judge_binding(readings), IsEmpty()) << "unknown";
}

TEST(Load, OnTheCoreOfARankIsNamed) {
  Readings readings = calm(2);
  readings.hosts[0].cores[1].busy = always(0.98);
  readings.hosts[0].others = {{4711, "python3", 0.99}, {1, "init", 0.01}};
  const auto findings = judge_load(readings);
  EXPECT_THAT(
      whats(findings, "load"),
      ElementsAre(AllOf(HasSubstr("core 1 98 % of the time"), HasSubstr("rank 1 may run there"),
                        HasSubstr("process 4711 (python3, 1.0 cores)"), testing::Not(HasSubstr("init")))));
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
}

TEST(Load, OnTheOtherHyperthreadOfARankIsNamed) {
  Readings readings = calm(2);
  readings.hosts[0].cores.push_back(made_up_core(2));
  readings.hosts[0].cores[2].physical = 0;
  readings.hosts[0].cores[2].busy = always(0.5);
  EXPECT_THAT(whats(judge_load(readings), "load"),
              ElementsAre(AllOf(HasSubstr("core 2 50 %"), HasSubstr("rank 0"))));
}

TEST(Load, OnceOrElsewhereIsNoProblem) {
  Readings readings = calm(2);
  readings.hosts[0].cores[0].busy[2] = 1;
  EXPECT_THAT(judge_load(readings), IsEmpty());
  readings.hosts[0].cores.push_back(made_up_core(2));
  readings.hosts[0].cores[2].busy = always(0.9);
  const auto findings = judge_load(readings);
  EXPECT_THAT(whats(findings, "load"), ElementsAre(HasSubstr("0.9 cores where no rank runs")));
  EXPECT_TRUE(is_fit(findings));
}

TEST(Load, OfAHypervisorAndALimitAreNamed) {
  Readings readings = calm(2);
  readings.hosts[0].cores[1].stolen = {0, 0.2, 0, 0.2, 0.1, 0, 0.1};
  EXPECT_THAT(whats(judge_load(readings), "load"),
              ElementsAre(HasSubstr("the hypervisor takes up to 9 % of the time of core 1")));
  readings = calm(2);
  readings.hosts[0].quota_cores = 1.5;
  EXPECT_THAT(whats(judge_load(readings), "load"), ElementsAre(HasSubstr("limited to 1.5 cores")));
  readings.hosts[0].quota_cores = 2;
  EXPECT_THAT(judge_load(readings), IsEmpty());
  readings.hosts[0].quota_stops = 4;
  EXPECT_THAT(whats(judge_load(readings), "load"), ElementsAre(HasSubstr("held back 4 times")));
}

}  // namespace
}  // namespace baton::doctor
