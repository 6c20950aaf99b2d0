// SPDX-License-Identifier: Apache-2.0
#include "harness/run/results.hpp"

#include <gmock/gmock.h>

#include "harness/process/world.hpp"
#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;

class ResultsOfARun : public MadeRunTest {};

TEST_F(ResultsOfARun, ACaseRunsFromItsBeginToItsEnd) {
  results_.start_launch(1);
  EXPECT_FALSE(results_.running());
  results_.begin(1);
  EXPECT_EQ(results_.running(), 1);
  EXPECT_EQ(results_.result(1, 1), nullptr);
  run_.times(1, {3, 1, 2});
  EXPECT_FALSE(results_.running());
  EXPECT_EQ(outcome_of(*results_.result(1, 1)), Outcome::timed);
  EXPECT_EQ(results_.last_launch(1), 1);
  EXPECT_EQ(results_.last_launch(0), 0);
}

TEST_F(ResultsOfARun, ALaunchThatIsStartedAgainHasWhatIsLeft) {
  results_.start_launch(1);
  run_.times(0, {1});
  results_.begin(2);
  run_.fails(2, "rank 1 died");
  results_.start_launch(1);
  EXPECT_EQ(results_.starts(), 2);
  EXPECT_THAT(results_.unsettled(4), ElementsAre(1, 3));
  results_.start_launch(2);
  EXPECT_THAT(results_.unsettled(4), ElementsAre(3, 1, 0)) << "the failed case is given up";
}

TEST_F(ResultsOfARun, EveryOtherLaunchIsReversedHoweverManyThereAre) {
  for (const int launch : {1, 2, 3, 4}) {
    results_.start_launch(launch);
    EXPECT_EQ(results_.is_reversed(), launch == 2 || launch == 4) << launch;
  }
}

TEST_F(ResultsOfARun, TheWorstOutcomeIsTheExitCode) {
  results_.start_launch(1);
  run_.times(0, {1});
  EXPECT_EQ(results_.summary(options_.cases), 0);
  run_.fails(1, "rank 1 died");
  testing::internal::CaptureStderr();
  EXPECT_EQ(results_.summary(options_.cases), ExitCode::failed);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("1 of 4 cases gave no time\n"));
}

TEST_F(ResultsOfARun, SkippedRowsAloneHaveAnExitCodeOfTheirOwn) {
  results_.start_launch(1);
  run_.skips(0, "there is no GPU");
  testing::internal::CaptureStderr();
  EXPECT_EQ(results_.summary(options_.cases), ExitCode::skipped);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("there is no GPU"));
}

}  // namespace
