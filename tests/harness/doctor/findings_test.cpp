// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/doctor/judges.hpp"
#include "tests/harness/doctor/made_up.hpp"

namespace baton::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Findings, ACalmMachineHasNone) {
  for (const int ranks : {1, 2, 3, 8}) {
    const auto findings = findings_of(calm(ranks));
    EXPECT_THAT(findings, IsEmpty()) << ranks << " ranks: " << findings.front().what;
    EXPECT_TRUE(is_fit(findings));
  }
}

TEST(Findings, ACalmMachineWithGpusHasNone) {
  Readings readings = calm(2);
  add_gpus(readings);
  EXPECT_THAT(findings_of(readings), IsEmpty());
}

TEST(Findings, ProblemsComeFirstAndNotesAreFit) {
  Readings readings = calm(2);
  readings.hosts[0].timer_seconds = 1e-6;
  EXPECT_TRUE(is_fit(findings_of(readings)));
  readings.ranks[1].cores = {0};
  const auto findings = findings_of(readings);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].about, "binding");
  EXPECT_EQ(findings[1].weight, Finding::Weight::note);
  EXPECT_FALSE(is_fit(findings));
}

TEST(Findings, EachSaysWhatToDo) {
  Readings readings = calm(4);
  add_gpus(readings);
  readings.ranks[2].spin_seconds = always(1);
  readings.ranks[1].devices[0].values["throttle_reasons"] = always(0xfe);
  readings.hosts[0].cores[3].busy = always(1);
  readings.build.type = "Debug";
  for (const Finding& one : findings_of(readings)) EXPECT_FALSE(one.advice.empty()) << one.what;
}

TEST(Exceeding, NeedsMostPasses) {
  EXPECT_TRUE(exceeds(always(0.2), 0.1));
  EXPECT_FALSE(exceeds(always(0.09), 0.1));
  EXPECT_FALSE(exceeds({}, 0.1));
  EXPECT_FALSE(exceeds({0, 0, 0, 9, 9, 9, 0}, 0.1)) << "three disturbances of seven";
  EXPECT_FALSE(exceeds({1, 1, 1, 1, 0, 0, 1}, 0.1)) << "two of seven repeats show nothing";
  EXPECT_TRUE(exceeds({1, 1, 1, 0, 1, 1, 1}, 0.1)) << "one of seven repeats shows nothing";
}

TEST(Build, OfAnotherTypeIsNotTheMachine) {
  Readings readings = calm(2);
  readings.build.type = "RelWithDebInfo";
  EXPECT_THAT(whats(judge_build(readings), "build"), ElementsAre(HasSubstr("RelWithDebInfo")));
}

TEST(Build, WithoutExecutorsForTheGpusIsNamed) {
  Readings readings = calm(2);
  readings.hosts[0].gpus = 2;
  EXPECT_THAT(whats(judge_build(readings), "build"),
              ElementsAre(HasSubstr("2 GPUs, and the build no executor")));
  readings.build.executors = {{"mpi", ""}, {"nccl", "no GPU here (no NVIDIA driver)"}};
  EXPECT_THAT(whats(judge_build(readings), "build"), ElementsAre(HasSubstr("nccl cannot run: no GPU here")));
  readings.hosts[0].gpus = 0;
  EXPECT_THAT(judge_build(readings), IsEmpty()) << "nobody misses GPUs where there are none";
}

TEST(Build, LittleSharedMemoryIsNoted) {
  Readings readings = calm(2);
  readings.hosts[0].shared_memory_bytes = 64 << 20;
  EXPECT_THAT(whats(judge_build(readings), "host"), ElementsAre(HasSubstr("64 MiB")));
}

TEST(Words, CountThings) {
  EXPECT_EQ(counted("rank", {}), "no rank");
  EXPECT_EQ(counted("rank", {3}), "rank 3");
  EXPECT_EQ(counted("rank", {2, 0}), "ranks 0 and 2");
  EXPECT_EQ(counted("rank", {0, 1, 2, 3}), "ranks 0 to 3");
  EXPECT_EQ(counted("core", {7, 1, 2, 3, 7, 9}), "cores 1 to 3, 7 and 9");
}

TEST(Words, ShowNumbers) {
  EXPECT_EQ(shown_seconds(0.42e-6), "0.42 us");
  EXPECT_EQ(shown_seconds(12.34e-3), "12.3 ms");
  EXPECT_EQ(shown_seconds(120e-6), "120 us");
  EXPECT_EQ(percent(0.494), "49 %");
  EXPECT_EQ(times(0.26), "1.3 times");
  EXPECT_EQ(times(232), "233 times");
}

}  // namespace
}  // namespace baton::doctor
