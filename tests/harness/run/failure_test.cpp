// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using What = Report::What;

const std::string name = "all_scan/mpi/ranks:2";

/// What a rank reports in the case `name`, perhaps at a step in which it waits for another one.
Report said(int rank, What what, std::optional<int> step = {}, std::optional<int> waits_for = {}) {
  Report report{.what = what, .rank = rank, .step = step, .waits_for = waits_for};
  report.part << name;
  return report;
}

Report paused(int rank, What what) {
  Report report = said(rank, what);
  report.between_rounds = true;
  return report;
}

LaunchEnd ended(std::vector<Report> reports, std::string signal = {}) {
  return {.exit_code = 137, .reports = std::move(reports), .signal = std::move(signal), .seconds = 2};
}

TEST(FailureOf, ADeadRankHasItsSignalAndWhereAnotherOneWas) {
  const Failure found = failure_of(ended({said(1, What::died), said(0, What::was, 3, 1)}, "signal 9"), name);
  EXPECT_EQ(found.reason, "rank 1 died of signal 9; rank 0 was at step 3, waiting for rank 1");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.step, 3);
  EXPECT_EQ(found.exit_code, 137);
  EXPECT_EQ(found.seconds, 2);
}

TEST(FailureOf, ARankThatWaitsInVainNamesTheOneThatItWaitsFor) {
  const Failure found = failure_of(ended({said(0, What::exceeded, 4, 1)}), name);
  EXPECT_EQ(found.reason, "rank 0 exceeded the time limit at step 4, waiting for rank 1");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.step, 4);
}

TEST(FailureOf, AStepSaysMoreThanAPause) {
  const Failure found =
      failure_of(ended({said(2, What::died), paused(0, What::was), said(1, What::was, 0, 2)}), name);
  EXPECT_EQ(found.reason, "rank 2 died; rank 1 was at step 0, waiting for rank 2");
  EXPECT_EQ(failure_of(ended({paused(0, What::was), said(1, What::died)}), name).reason,
            "rank 1 died; rank 0 was between two rounds");
}

TEST(FailureOf, AnotherRankIsNamedAsItWasFound) {
  const std::string place = "; rank 0 was at step 7, waiting for rank 1";
  for (const auto& [what, words] : {std::pair(What::died, "died"),
                                    {What::gone, "is gone"},
                                    {What::stopped, "is stopped"},
                                    {What::lost, "is lost"}}) {
    const Failure found = failure_of(ended({said(0, What::was, 7, 1), said(1, what)}), name);
    EXPECT_EQ(found.reason, std::string("rank 1 ") + words + place);
    EXPECT_EQ(found.rank, 1);
    EXPECT_EQ(found.step, 7) << "where the other rank was";
  }
  for (const What what : {What::waited, What::exceeded, What::ended}) {
    const Failure found = failure_of(ended({said(1, what, 7, 0)}), name);
    EXPECT_EQ(found.rank, 0) << "the one that it waits for";
    EXPECT_EQ(found.step, 7);
  }
}

TEST(FailureOf, APartThatIsNotTheCaseIsNamed) {
  Report early{.what = What::gone, .rank = 1};
  early.part << "start-up";
  EXPECT_EQ(failure_of(ended({early}), name).reason, "rank 1 is gone in start-up");
}

TEST(FailureOf, AnErrorHasItsTextAndTheStepOfItsRank) {
  Report error{.rank = 2, .step = 5};
  error.text << "lost the connection";
  const Failure found = failure_of(ended({error}), name);
  EXPECT_EQ(found.reason, "rank 2: lost the connection");
  EXPECT_EQ(found.rank, 2);
  EXPECT_EQ(found.step, 5);
}

TEST(FailureOf, ADeathThatNoRankHasSeenIsNamedAsTheLauncherKnowsIt) {
  LaunchEnd end = ended({said(2, What::was, 1, 1)}, "signal 9 (Killed)");
  end.reports.push_back({.what = What::died, .rank = 0});
  const Failure found = failure_of(end, name);
  EXPECT_EQ(found.reason, "rank 0 died of signal 9 (Killed); rank 2 was at step 1, waiting for rank 1");
  EXPECT_EQ(found.rank, 0);
  end.reports = {said(0, What::ended), {.what = What::died, .rank = 0}};
  EXPECT_EQ(failure_of(end, name).reason, "rank 0 died of signal 9 (Killed)")
      << "a rank that was ended is not the one that died";
  end.reports.back().what = What::ended_first;
  EXPECT_EQ(failure_of(end, name).reason, "rank 0 ended first");
  end.reports.pop_back();
  EXPECT_EQ(failure_of(end, name).reason, "rank 0 was ended");
}

TEST(FailureOf, ALaunchThatWasEndedSaysWhyFirst) {
  LaunchEnd end = ended({Report{.what = What::stopped, .rank = 1}, said(0, What::was, 2, 1)});
  end.silence = "its processes said nothing for 30 s";
  const Failure found = failure_of(end, name);
  EXPECT_EQ(found.reason, end.silence + "; rank 1 is stopped; rank 0 was at step 2, waiting for rank 1");
  EXPECT_EQ(found.rank, 1);
  end.reports.clear();
  EXPECT_EQ(failure_of(end, name).reason, end.silence);
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

TEST(FailuresInARow, GiveUpAllLikeThemAtTheThird) {
  const Options options = made_options();  // of two names at 2 ranks, then at 3
  const std::vector<int> none;
  FailuresInARow failures(options.cases, false);
  EXPECT_EQ(failures.add(0), none);
  EXPECT_EQ(failures.add(1), none);
  EXPECT_EQ(failures.add(0), (std::vector{0, 1})) << "all at 2 ranks";
  EXPECT_EQ(failures.reason(), "not tried, since 3 cases of local at 2 ranks failed before");
  EXPECT_EQ(failures.add(2), none) << "another number of ranks begins anew";
  failures.add(2);
  failures.clear();
  EXPECT_EQ(failures.add(3), none);
}

TEST(FailuresInARow, GiveUpOneNameAlone) {
  const Options options = made_options();
  FailuresInARow failures(options.cases, true);
  for (const int index : {0, 1, 0, 1}) EXPECT_TRUE(failures.add(index).empty()) << "the names take turns";
  failures.add(1);
  EXPECT_EQ(failures.add(1), std::vector{1});
}

}  // namespace
