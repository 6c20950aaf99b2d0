// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/doctor/judges.hpp"
#include "tests/harness/doctor/made_up.hpp"

namespace baton::doctor {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PairReadings& pair(Readings& readings, int from, int to) {
  for (PairReadings& one : readings.links[0].pairs)
    if (one.from == from && one.to == to) return one;
  throw std::out_of_range("no such pair");
}

TEST(SlowPair, IsNamed) {
  for (const int ranks : {3, 4, 8}) {
    Readings readings = calm(ranks);
    pair(readings, 0, 2).latency_seconds = always(200e-6);
    pair(readings, 0, 2).large_seconds = always(350e-6);
    const auto findings = judge_links(readings);
    EXPECT_THAT(whats(findings, "link"),
                ElementsAre(AllOf(HasSubstr("the link of ranks 0 and 2 is slow (mpi): 8 bytes take 200 us"),
                                  HasSubstr("400 times"))));
    EXPECT_THAT(findings[0].ranks, ElementsAre(0, 2));
  }
}

TEST(SlowPair, WithAFewBytesASecondIsNamed) {
  Readings readings = calm(4);
  pair(readings, 1, 3).large_seconds = always(300e-6);
  EXPECT_THAT(
      whats(judge_links(readings), "link"),
      ElementsAre(AllOf(HasSubstr("ranks 1 and 3"), HasSubstr("1 MiB take 300 us, between others 150 us"))));
}

TEST(SlowPair, MustBeSlowInMostPasses) {
  Readings readings = calm(4);
  for (int repeat = 0; repeat < 3; ++repeat) pair(readings, 1, 3).latency_seconds[repeat] = 1;
  EXPECT_THAT(judge_links(readings), IsEmpty());
}

TEST(SlowPair, IsNoneForAFractionOfAMicrosecond) {
  Readings readings = calm(4);
  pair(readings, 1, 3).latency_seconds = always(1.4e-6);
  EXPECT_THAT(judge_links(readings), IsEmpty());
}

TEST(SlowPair, IsNoneAmongPairsThatVaryByAFifth) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> factor(0.9, 1.1);
  for (int machine = 0; machine < 200; ++machine) {
    Readings readings = calm(8);
    for (PairReadings& one : readings.links[0].pairs)
      for (Repeats* repeats : {&one.latency_seconds, &one.large_seconds})
        for (double& seconds : *repeats) seconds *= factor(random);
    EXPECT_THAT(judge_links(readings), IsEmpty());
  }
}

TEST(SlowPair, IsComparedWithPairsAtLeastAsFarApart) {
  Readings readings = calm(4);  // two packages with two cores each
  for (int core = 0; core < 4; ++core)
    readings.hosts[0].cores[core].package = readings.hosts[0].cores[core].cache = core / 2;
  for (PairReadings& one : readings.links[0].pairs)
    if (one.from / 2 != one.to / 2) one.latency_seconds = always(3e-6);
  EXPECT_THAT(judge_links(readings), IsEmpty()) << "pairs across packages are slower by nature";
  pair(readings, 2, 3).latency_seconds = always(9e-6);
  EXPECT_THAT(whats(judge_links(readings), "link"), ElementsAre(HasSubstr("ranks 2 and 3")));
}

TEST(SlowRank, HasAllOfItsLinksInOneFinding) {
  Readings readings = calm(5);
  for (PairReadings& one : readings.links[0].pairs)
    if (one.from == 3 || one.to == 3) one.latency_seconds = always(50e-6);
  EXPECT_THAT(whats(judge_links(readings), "link"), ElementsAre(HasSubstr("all links of rank 3 are slow")));
}

TEST(SlowRank, ThatIsLateExplainsItsLinks) {
  Readings readings = calm(4);
  readings.ranks[3].spin_seconds = always(10e-3);
  for (PairReadings& one : readings.links[0].pairs)
    if (one.to == 3) one.latency_seconds = always(4e-3);
  EXPECT_THAT(judge_links(readings), IsEmpty());
}

TEST(OnlyPair, OfAHostIsNamedIfItUsesNoSharedMemory) {
  Readings readings = calm(2);
  pair(readings, 0, 1).latency_seconds = always(45e-6);
  EXPECT_THAT(whats(judge_links(readings), "link"),
              ElementsAre(HasSubstr("ranks 0 and 1 of one host exchange 8 bytes in 45.0 us")));
  readings.ranks[1].host = 2;
  readings.hosts.push_back({.host = 2, .cores = {made_up_core(1)}});
  EXPECT_THAT(judge_links(readings), IsEmpty()) << "hosts are far apart by nature";
}

TEST(OnlyPair, OfGpusIsNotedIfItGoesThroughTheHost) {
  Readings readings = calm(2);
  readings.links = {made_up_links("nccl", 2, 12e-6, 100e-6)};
  readings.links[0].is_device = true;
  readings.links[0].large_bytes = 16 << 20;
  EXPECT_THAT(judge_links(readings), IsEmpty());
  pair(readings, 0, 1).large_seconds = always(3e-3);
  const auto findings = judge_links(readings);
  EXPECT_THAT(whats(findings, "link"), ElementsAre(HasSubstr("GPUs 0 and 1 exchange 5.6 GB/s (nccl)")));
  EXPECT_TRUE(is_fit(findings));
}

}  // namespace
}  // namespace baton::doctor
