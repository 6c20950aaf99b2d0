// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/slowness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/doctor/devices.hpp"
#include "harness/doctor/judges.hpp"
#include "tests/harness/doctor/made_up.hpp"

namespace baton::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(LateRank, IsNamedWithTheThreadBesideIt) {
  Readings readings = calm(2);
  readings.ranks[1].spin_seconds = always(10e-3);
  readings.ranks[1].waited = always(0.49);
  const auto findings = judge_ranks(readings);
  EXPECT_THAT(whats(findings, "rank"),
              ElementsAre(AllOf(HasSubstr("rank 1 is late"), HasSubstr("10.0 ms"), HasSubstr("5.00 ms"),
                                HasSubstr("2.0 times"), HasSubstr("another thread had core 1 for 49 %"))));
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
  EXPECT_THAT(late_ranks(readings), ElementsAre(1));
}

TEST(LateRank, IsNoneForOneDisturbance) {
  Readings readings = calm(2);
  readings.ranks[1].spin_seconds[3] = 1;
  readings.ranks[1].waited[3] = 0.9;
  EXPECT_THAT(judge_ranks(readings), IsEmpty());
}

TEST(LateRank, IsNoneIfDisturbancesHitDifferentRanks) {
  Readings readings = calm(3);
  for (int repeat = 0; repeat < made_up_repeats; ++repeat)
    readings.ranks[repeat % 3].spin_seconds[repeat] *= 2;
  EXPECT_THAT(judge_ranks(readings), IsEmpty());
}

TEST(LateRank, IsNoneOnRanksThatVaryByAFewPercent) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> factor(0.97, 1.03);
  for (int machine = 0; machine < 200; ++machine) {
    Readings readings = calm(8);
    for (RankReadings& rank : readings.ranks)
      for (double& seconds : rank.spin_seconds) seconds *= factor(random);
    readings.ranks[machine % 8].spin_seconds[machine % made_up_repeats] *= 3;
    EXPECT_THAT(judge_ranks(readings), IsEmpty());
  }
}

TEST(LateRank, IsNamedWithItsClock) {
  Readings readings = calm(3);
  for (RankReadings& rank : readings.ranks) rank.clock_mhz = always(3000);
  readings.ranks[2].spin_seconds = always(8e-3);
  readings.ranks[2].clock_mhz = always(1900);
  EXPECT_THAT(whats(judge_ranks(readings), "rank"),
              ElementsAre(AllOf(HasSubstr("rank 2"), HasSubstr("1900 MHz"), HasSubstr("3000 MHz"))));
}

TEST(LateRank, IsNamedWithTheHypervisor) {
  Readings readings = calm(3);
  readings.ranks[0].spin_seconds = always(8e-3);
  readings.hosts[0].cores[0].stolen = always(0.3);
  EXPECT_THAT(whats(judge_ranks(readings), "rank"),
              ElementsAre(AllOf(HasSubstr("rank 0"), HasSubstr("the hypervisor took core 0 for 30 %"))));
}

TEST(WaitingRanks, AreNamedTogetherIfNoneIsLate) {
  Readings readings = calm(2);
  for (RankReadings& rank : readings.ranks) rank.waited = always(0.5);
  EXPECT_THAT(whats(judge_ranks(readings), "rank"),
              ElementsAre(AllOf(HasSubstr("ranks 0 and 1 wait for their cores (core 0, core 1)"),
                                HasSubstr("50 %"))));
}

TEST(WaitingRanks, AreNotNamedWhereTheyWaitForOneAnother) {
  Readings readings = calm(3);
  for (RankReadings& rank : readings.ranks) {
    rank.cores = {0, 1};
    rank.waited = always(0.3);
  }
  readings.ranks[1].spin_seconds = always(1);
  EXPECT_THAT(judge_ranks(readings), IsEmpty());
}

TEST(Clocks, BelowTheBaseAreNamed) {
  Readings readings = calm(2);
  for (RankReadings& rank : readings.ranks) {
    rank.clock_mhz = always(2600);
    rank.base_mhz = 2500;
    rank.most_mhz = rank.allowed_mhz = 3800;
    rank.governor = "powersave";
  }
  EXPECT_THAT(judge_clocks(readings), IsEmpty());
  readings.ranks[1].clock_mhz = always(1200);
  EXPECT_THAT(
      whats(judge_clocks(readings), "clock"),
      ElementsAre(AllOf(HasSubstr("rank 1 runs at 1200 MHz"), HasSubstr("2500"), HasSubstr("powersave"))));
}

TEST(Clocks, UnknownOnesAreNoFinding) {
  Readings readings = calm(2);
  readings.ranks[0].most_mhz = 3800;
  EXPECT_THAT(judge_clocks(readings), IsEmpty());
}

TEST(Clocks, HeatIsAProblemAndALimitANote) {
  Readings readings = calm(2);
  readings.ranks[0].heat_events = 3;
  readings.ranks[1].most_mhz = 3800;
  readings.ranks[1].allowed_mhz = 2000;
  const auto findings = judge_clocks(readings);
  EXPECT_THAT(whats(findings, "clock"), ElementsAre(HasSubstr("heat slowed the core of rank 0 3 times"),
                                                    HasSubstr("2000 of its 3800 MHz")));
  EXPECT_EQ(findings[0].weight, Finding::Weight::problem);
  EXPECT_EQ(findings[1].weight, Finding::Weight::note);
}

TEST(Gpus, ThatAreThrottledByHeatAreAProblem) {
  Readings readings = calm(2);
  add_gpus(readings);
  readings.ranks[1].devices[0].values["throttle_reasons"] = always(0x40);
  readings.ranks[1].devices[0].values["sm_clock_mhz"] = always(1200);
  const auto findings = judge_devices(readings);
  EXPECT_THAT(whats(findings, "clock"),
              ElementsAre(AllOf(HasSubstr("the GPU of rank 1 is throttled by the hardware, for heat"),
                                HasSubstr("1200 MHz")),
                          HasSubstr("rank 1's GPU is 1200 MHz, that of another 1980 MHz")));
  EXPECT_FALSE(is_fit(findings));
}

TEST(Gpus, AtTheirPowerLimitOrIdleAreFit) {
  Readings readings = calm(2);
  add_gpus(readings);
  readings.ranks[0].devices[0].values["throttle_reasons"] = always(4 + 1);
  const auto findings = judge_devices(readings);
  EXPECT_THAT(whats(findings, "clock"), ElementsAre(HasSubstr("its power limit")));
  EXPECT_TRUE(is_fit(findings));
}

TEST(Gpus, ThatAreLateAreNamed) {
  Readings readings = calm(4);
  add_gpus(readings);
  readings.ranks[3].devices[0].work_seconds = always(1.4e-3);
  EXPECT_THAT(whats(judge_devices(readings), "rank"),
              ElementsAre(AllOf(HasSubstr("the GPU of rank 3 is late"), HasSubstr("1.4 times"),
                                HasSubstr("at 1980 MHz"))));
}

TEST(Gpus, WhoseClocksCannotBeReadAreNoted) {
  Readings readings = calm(2);
  add_gpus(readings);
  for (RankReadings& rank : readings.ranks)
    for (auto& [name, repeats] : rank.devices[0].values) repeats = always(-1);
  const auto findings = judge_devices(readings);
  EXPECT_THAT(whats(findings, "clock"),
              ElementsAre(HasSubstr("cannot be read"), Not(HasSubstr("throttled"))));
  EXPECT_TRUE(is_fit(findings));
}

}  // namespace
}  // namespace baton::doctor
