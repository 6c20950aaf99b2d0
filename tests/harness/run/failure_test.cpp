// SPDX-License-Identifier: Apache-2.0
#include "harness/run/failure.hpp"

#include <gtest/gtest.h>

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

TEST(FailureOf, ALaunchWithoutReportsHasItsExitCode) {
  EXPECT_EQ(failure_of(ended({}), name).reason, "its launch ended with exit code 137");
  EXPECT_FALSE(failure_of(ended({}), name).rank);
}

}  // namespace
