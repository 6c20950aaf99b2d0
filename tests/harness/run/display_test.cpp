// SPDX-License-Identifier: Apache-2.0
#include "harness/run/display.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "harness/run/heading.hpp"
#include "harness/run/rows.hpp"
#include "tests/harness/run/made_run.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Displayed : public MadeRunTest {
 protected:
  /// What a call prints.
  template <class Call>
  std::string printed(const Call& call) {
    testing::internal::CaptureStdout();
    call();
    return testing::internal::GetCapturedStdout();
  }
  std::string refresh() {
    return printed([this] { display_.refresh(); });
  }
  std::string finish() {
    return printed([this] { display_.finish(); });
  }

  /// The names of the rows in a text, with their ranks.
  static std::vector<std::string> rows(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name, ranks;
      if (words >> name >> ranks && name.ends_with("_scan")) all.push_back(name + " " + ranks);
    }
    return all;
  }

  Display display_{options_, results_, comparisons_, 2};
};

TEST_F(Displayed, AContestIsPrintedWhenItIsOverInTheLastLaunch) {
  display_.expect(3);
  for (const int launch : {1, 2, 3}) {
    results_.start_launch(launch);
    run_.times(0, {2});
    EXPECT_THAT(rows(refresh()), IsEmpty());
    run_.times(1, {1});
    if (launch == 3) {
      EXPECT_THAT(rows(refresh()), ElementsAre("ring_scan 2", "all_scan 2"));
    }
    run_.times(2, {1});
    run_.times(3, {2});
  }
  EXPECT_THAT(rows(refresh()), ElementsAre("all_scan 3", "ring_scan 3"));
  EXPECT_THAT(rows(finish()), IsEmpty()) << "nothing twice";
}

TEST_F(Displayed, ALaunchInReverseOrderPrintsNoContestBeforeItRan) {
  results_.start_launch(2);
  for (const int index : {3, 2}) run_.times(index, {1});
  results_.begin(1);
  EXPECT_THAT(rows(refresh()), IsEmpty()) << "the contest above has not run yet";
  run_.times(1, {1});
  run_.times(0, {2});
  EXPECT_THAT(rows(refresh()), ElementsAre("ring_scan 2", "all_scan 2", "all_scan 3", "ring_scan 3"));
}

TEST_F(Displayed, ATimeThatCannotBeIsCalledSo) {
  for (const int launch : {1, 2}) {
    results_.start_launch(launch);
    run_.times(0, {2}, 3);
    run_.times(1, {1}, 1);
  }
  EXPECT_THAT(finish(), HasSubstr("# all_scan takes 67 % of its bound"));
}

TEST_F(Displayed, ALaunchThatDiesTakesNoRowWithIt) {
  results_.start_launch(1);
  for (int index = 0; index < 4; ++index) run_.times(index, {1.0 + index});
  results_.start_launch(2);
  run_.times(0, {1});
  results_.begin(1);  // and no more
  EXPECT_THAT(rows(refresh()), IsEmpty());
  const std::string text = finish();
  EXPECT_THAT(rows(text), ElementsAre("all_scan 2", "ring_scan 2", "all_scan 3", "ring_scan 3"));
}

TEST_F(Displayed, CasesThatWereNotSelectedHoldNothingUp) {
  display_.expect(3);
  results_.start_launch(3);
  run_.times(0, {1});
  results_.begin(2);
  EXPECT_THAT(rows(refresh()), ElementsAre("all_scan 2")) << "the next contest has begun";
}

TEST_F(Displayed, RowsWaitWhileTheNumberOfLaunchesIsUnknown) {
  display_.expect(0);
  results_.start_launch(1);
  for (int index = 0; index < 4; ++index) run_.times(index, {1.0 + index});
  EXPECT_THAT(rows(refresh()), IsEmpty());
  display_.expect(1);
  EXPECT_THAT(rows(refresh()), ElementsAre("all_scan 2", "ring_scan 2", "all_scan 3", "ring_scan 3"));
}

TEST_F(Displayed, NoticesAreSaidOnce) {
  results_.start_launch(1);
  results_.begin(0);
  results_.announce({"local, 2 ranks", "# local: fast\n"});
  EXPECT_THAT(refresh(), HasSubstr("# local: fast\n"));
  results_.start_launch(2);
  results_.announce({"local, 2 ranks", "# local: slow\n"});
  results_.announce({"trace", "# trace of one more round\n"});
  EXPECT_THAT(refresh(), Not(HasSubstr("local:")));
  EXPECT_THAT(finish(), HasSubstr("# trace of one more round\n"));
}

TEST_F(Displayed, ManySkippedRowsOfOneReasonAreOneLine) {
  options_.cases.resize(2);
  options_.cases.push_back(options_.cases[0]);
  options_.cases[2].blocks = 4;
  Display display(options_, results_, comparisons_, 1);
  results_.start_launch(1);
  for (int index = 0; index < 3; ++index) run_.skips(index, "there is no GPU");
  EXPECT_THAT(printed([&] { display.finish(); }),
              HasSubstr("3 rows skipped: there is no GPU: all_scan, ring_scan, all_scan\n"));
}

TEST_F(Displayed, NoLineOfTheHeadingIsLongerThanATerminal) {
  std::istringstream lines(heading(options_));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 110u) << line;  // bytes
  EXPECT_GT(count, 2);
}

TEST_F(Displayed, TheHeadingHasWhatAllCasesShare) {
  EXPECT_THAT(heading(options_), HasSubstr("exclusive scan, forward, isolated rounds, heads of 4 x 4"));
  EXPECT_EQ(Differences(options_.cases).of_contest(options_.cases[0]), "");
  options_.cases[0].cadence = Cadence::streaming;
  EXPECT_THAT(heading(options_), Not(HasSubstr("isolated")));
  EXPECT_EQ(Differences(options_.cases).of_contest(options_.cases[0]), "streaming rounds");
  EXPECT_EQ(Differences(options_.cases).of_contest(options_.cases[1]), "isolated rounds");
}

/// The line of a layer in the heading, on one thread a rank.
std::string heading_of(const char* method, GateKind gate, std::int64_t heads) {
  Layer layer;
  layer.share = {64, heads, 4, 6, 8, gate};
  Options options;
  options.cases = {{.workload = operator_workload(find_method(method), layer),
                    .backend = &find_backend("mpi"),
                    .ranks = 2,
                    .threads_per_rank = 1}};
  std::string text = heading(options);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

TEST(Heading, SoftmaxAttentionHasNeitherGatesNorChunks) {
  EXPECT_THAT(heading_of("zeco", GateKind::none, 2), HasSubstr("no gates, chunks of 8"));
  const std::string softmax = heading_of("ring_attention_softmax", GateKind::none, 2);
  EXPECT_THAT(softmax, HasSubstr("softmax attention"));
  EXPECT_THAT(softmax, Not(HasSubstr("gates")));
  EXPECT_THAT(softmax, Not(HasSubstr("chunks")));
}

TEST(Heading, OneThreadOverlapsNothing) {
  EXPECT_THAT(heading_of("zeco", GateKind::vector, 2), Not(HasSubstr("turns, overlapped")));
  EXPECT_THAT(heading_of("zeco", GateKind::vector, 2), HasSubstr("in the order of"));
}

TEST(Heading, OneOfAKindIsSingular) {
  EXPECT_THAT(heading_of("zeco", GateKind::vector, 1), HasSubstr(" 1 head of 4 x 6"));
  EXPECT_THAT(heading_of("zeco", GateKind::vector, 2), HasSubstr(" 2 heads of 4 x 6"));
}

TEST_F(Displayed, ARowBelowItsBoundHasItsReasonUnderTheTable) {
  Display display(options_, results_, comparisons_, 1);
  results_.start_launch(1);
  for (int index = 0; index < 3; ++index) run_.times(index, {1}, 0.5);
  run_.times(3, {1}, 1.2);
  EXPECT_THAT(printed([&] { display.finish(); }), HasSubstr("\n# Above 100 % of its bound"));
}

TEST_F(Displayed, WithoutSuchARowNothingIsSaidOfIt) {
  Display display(options_, results_, comparisons_, 1);
  results_.start_launch(1);
  for (int index = 0; index < 4; ++index) run_.times(index, {1}, 1.004);
  EXPECT_THAT(printed([&] { display.finish(); }), Not(HasSubstr("# Above 100 %")));
}

TEST_F(Displayed, AllColumnsSayWhichLaunchTheyAreOf) {
  options_.wide = true;
  Display display(options_, results_, comparisons_, 2);
  for (int launch = 1; launch <= 2; ++launch) {
    results_.start_launch(launch);
    for (int index = 0; index < 4; ++index) run_.times(index, {1});
  }
  EXPECT_THAT(printed([&] { display.finish(); }), HasSubstr("are of the last launch"));
}

TEST_F(Displayed, ASimulatedRunHasNoRoundsAndNoTimer) {
  for (Case& c : options_.cases) c.backend = &find_backend("simulator");
  const std::string text = heading(options_);
  EXPECT_THAT(text, HasSubstr("virtual time"));
  EXPECT_THAT(text, Not(HasSubstr("warm-up")));
  EXPECT_THAT(text, Not(HasSubstr("timer")));
  EXPECT_THAT(text, Not(HasSubstr("cores")));
}

}  // namespace
