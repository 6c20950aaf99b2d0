// SPDX-License-Identifier: Apache-2.0
#include "harness/run/progress.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run/results.hpp"
#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class HowFar : public MadeRunTest {
 protected:
  /// Runs a case for so many seconds.
  void run(int index, double seconds) {
    results_.begin(index);
    progress_.look(results_);
    now_ += seconds;
    run_.times(index, {1});
    progress_.look(results_);
  }
  std::string line(int launches) const {
    return progress_.what(results_, launches) + progress_.left(results_, launches);
  }
  std::string begin(int index, int launches) {
    results_.begin(index);
    progress_.look(results_);
    return line(launches);
  }

  double now_ = 100;
  Progress progress_{options_.cases, [this] { return now_; }};
};

TEST_F(HowFar, NamesTheCase) {
  results_.start_launch(1);
  EXPECT_EQ(line(1), "") << "none runs";
  EXPECT_EQ(begin(0, 1), "case 1 of 4 (all_scan on local, 2 ranks, 64)") << "no case has ended yet";
}

TEST_F(HowFar, NamesWhatTellsTheCaseFromTheOthers) {
  options_.cases[1].cadence = Cadence::streaming;
  options_.cases[1].blocks = 4;
  Progress progress(options_.cases, [] { return 0.0; });
  results_.start_launch(1);
  const auto what = [&](int index) {
    results_.begin(index);
    progress.look(results_);
    return progress.what(results_, 1);
  };
  EXPECT_THAT(what(0), EndsWith("(all_scan on local, 2 ranks, 64, isolated rounds, 1 block)"));
  run_.times(0, {1});
  EXPECT_THAT(what(1), EndsWith("(ring_scan on local, 2 ranks, 64, streaming rounds)"))
      << "it does not cut its state";
}

TEST_F(HowFar, CasesTakeAsLongAsThoseBeforeThem) {
  results_.start_launch(1);
  run(0, 3);
  run(1, 5);
  EXPECT_THAT(begin(2, 1), EndsWith(": about 8 s left")) << "two cases of 4 s";
  now_ += 1;
  EXPECT_THAT(line(1), EndsWith(": about 7 s left"));
  now_ += 100;
  EXPECT_THAT(line(1), EndsWith(": about 4 s left")) << "one case that has not begun";
}

TEST_F(HowFar, LaterLaunchesTakeAsLongAsEarlierOnes) {
  results_.start_launch(1);
  for (int index = 0; index < 4; ++index) run(index, 10 * (index + 1));
  results_.start_launch(2);
  EXPECT_THAT(begin(3, 3), HasSubstr("launch 2 of 3, case 1 of 4"));
  EXPECT_THAT(line(3), EndsWith(": about 3 min left")) << "100 s here and 100 s later";
  EXPECT_THAT(line(0), Not(HasSubstr("left"))) << "nobody knows how many launches follow";
}

TEST(ProgressLine, OffATerminalACaseIsShownOnce) {
  double now = 0;
  testing::internal::CaptureStderr();
  {
    ProgressLine line(true, [&] { return now; });
    for (const char* what : {"case 1", "case 1", "case 2"})
      for (int seconds = 0; seconds < 11; ++seconds, ++now) line.show(what, fmt::format(": {} s left", now));
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(shown, "case 1: 10 s left\ncase 2: 22 s left\n");
}

TEST(Duration, HasAUnitThatSuits) {
  EXPECT_EQ(duration(7.4), "7 s");
  EXPECT_EQ(duration(99), "99 s");
  EXPECT_EQ(duration(600), "10 min");
  EXPECT_EQ(duration(9000), "2.5 h");
}

}  // namespace
