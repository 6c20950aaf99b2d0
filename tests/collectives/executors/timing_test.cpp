// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/timing.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

TEST(StepRecorder, NotesOnlyWhileItIsToldTo) {
  StepRecorder recorder(7, 2);
  const double before = monotonic_seconds();
  recorder.starts(0), recorder.finishes(0);
  recorder.record(true);
  recorder.starts(1), recorder.finishes(1);
  recorder.record(false);
  const double finish = recorder.times()[1].finish_seconds;
  recorder.finishes(1);
  EXPECT_EQ(recorder.times()[0].finish_seconds, 0);
  EXPECT_EQ(recorder.times()[1].finish_seconds, finish);
  EXPECT_EQ(recorder.times()[1].rank, 7);
  EXPECT_EQ(recorder.times()[1].step, 1);
  EXPECT_GE(recorder.times()[1].start_seconds, before);
  EXPECT_GE(finish, recorder.times()[1].start_seconds);
}

TEST(Median, IsTheMiddleOneOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 2, 100}), 3);
}

}  // namespace
