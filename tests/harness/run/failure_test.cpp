// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "harness/process/report_line.hpp"

namespace {

using namespace baton;

const std::string name = "all_scan/mpi/ranks:2";

LaunchEnd ended(std::vector<std::string> reports, std::string signal = {}) {
  return {.exit_code = 137, .reports = std::move(reports), .signal = std::move(signal), .seconds = 2};
}

TEST(FailureOf, ADeadRankHasItsSignalAndWhereAnotherOneWas) {
  const Failure found =
      failure_of(ended({"rank 1 died in " + name, "rank 0 was in " + name + " at step 3, waiting for rank 1"},
                       "signal 9"),
                 name);
  EXPECT_EQ(found.reason, "rank 1 died of signal 9; rank 0 was at step 3, waiting for rank 1");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.step, 3);
  EXPECT_EQ(found.exit_code, 137);
  EXPECT_EQ(found.seconds, 2);
}

TEST(FailureOf, ARankThatWaitsInVainNamesTheOneThatItWaitsFor) {
  const Failure found =
      failure_of(ended({"rank 0 exceeded 3 s in " + name + " at step 4, waiting for rank 1"}), name);
  EXPECT_EQ(found.reason, "rank 0 exceeded 3 s at step 4, waiting for rank 1");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.step, 4);
}

TEST(FailureOf, AStepSaysMoreThanAPause) {
  const Failure found =
      failure_of(ended({"rank 2 died in " + name, "rank 0 was in " + name + " between two rounds",
                        "rank 1 was in " + name + " at step 0, waiting for rank 2"}),
                 name);
  EXPECT_EQ(found.reason, "rank 2 died; rank 1 was at step 0, waiting for rank 2");
}

TEST(FailureOf, WhatTheWatchdogSaysIsUnderstood) {
  const auto report = [](int rank, std::string_view what, std::string_view where = "") {
    return std::string(said::rank) + std::to_string(rank) + std::string(what) + name + std::string(where);
  };
  const std::string waits = std::string(said::at_step) + "7" + std::string(said::waiting_for) + "0";
  for (const std::string_view what : {said::died, said::gone, said::stopped, said::lost}) {
    const Failure found = failure_of(ended({report(0, said::was, waits), report(1, what)}), name);
    EXPECT_EQ(found.rank, 1) << what;
    EXPECT_EQ(found.step, 7) << what << "where the other rank was";
    EXPECT_EQ(found.reason.find(name), std::string::npos) << found.reason;
    EXPECT_TRUE(found.reason.starts_with("rank 1 ")) << found.reason;
  }
  for (const std::string_view what : {said::waited, said::exceeded, said::ended}) {
    const Failure found = failure_of(ended({report(1, what, waits)}), name);
    EXPECT_EQ(found.rank, 0) << what << "the one that it waits for";
    EXPECT_EQ(found.step, 7) << what;
  }
  const Failure pause =
      failure_of(ended({report(0, said::was, said::between_rounds), report(1, said::died)}), name);
  EXPECT_EQ(pause.reason, "rank 1 died; rank 0 was between two rounds");
}

TEST(FailureOf, ADeathThatNoRankHasSeenIsNamedAsTheLauncherKnowsIt) {
  LaunchEnd end = ended({"rank 2 was in " + name + " at step 1, waiting for rank 1"}, "signal 9 (Killed)");
  end.death = "rank 0 died of signal 9 (Killed)";
  const Failure found = failure_of(end, name);
  EXPECT_EQ(found.reason, "rank 0 died of signal 9 (Killed); rank 2 was at step 1, waiting for rank 1");
  EXPECT_EQ(found.rank, 0);
  end.reports = {"rank 0 was ended in " + name};
  EXPECT_EQ(failure_of(end, name).reason, end.death) << "a rank that was ended is not the one that died";
}

TEST(FailureOf, ALaunchWithoutReportsHasTheWordsOfItsLauncher) {
  LaunchEnd end = ended({});
  end.launcher_words = "there is no room";
  EXPECT_EQ(failure_of(end, name).reason, "its launch ended with exit code 137: there is no room");
}

TEST(FailureOf, ALaunchWithoutReportsHasItsExitCode) {
  EXPECT_EQ(failure_of(ended({}), name).reason, "its launch ended with exit code 137");
  EXPECT_FALSE(failure_of(ended({}), name).rank);
}

}  // namespace
