// SPDX-License-Identifier: Apache-2.0
// What processes tell one another through the file of a outcomes, and what a file of records tells.
#include "harness/run/outcomes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/schedule/errors.hpp"
#include "harness/process/system.hpp"
#include "harness/record/json.hpp"
#include "tests/harness/run/made_run.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;
using State = Outcome::State;

class OutcomesFile : public testing::Test {
 protected:
  OutcomesFile() { std::ofstream{path_}; }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.file("outcomes");
  Options options_ = made_options();
};

TEST_F(OutcomesFile, OneProcessReadsWhatAnotherWrote) {
  Outcomes writer(path_), reader(path_);
  writer.run();
  writer.start_launch(1);
  writer.meet();
  writer.announce({"local", "# local: fast\n"});
  MadeRun{options_, writer}.times(1, {3, 1, 2});
  MadeRun{options_, writer}.fails(2, "rank 1 died");
  writer.begin(3);
  reader.read_on();
  EXPECT_EQ(reader.run(), writer.run());
  EXPECT_EQ(reader.launch(), 1);
  EXPECT_TRUE(reader.have_met());
  EXPECT_EQ(reader.notices().at(0).text, "# local: fast\n");
  EXPECT_EQ(reader.outcome(1, 0), nullptr);
  EXPECT_EQ(reader.outcome(1, 1)->seconds(), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(reader.outcome(1, 2)->state, State::failed);
  EXPECT_EQ(reader.outcome(1, 2)->reason, "rank 1 died");
  EXPECT_EQ(reader.unfinished(), 3);
  EXPECT_EQ(reader.ended(), writer.ended());
}

TEST_F(OutcomesFile, AWriterKnowsItsOwnLinesOnce) {
  Outcomes outcomes(path_);
  outcomes.start_launch(1);
  outcomes.announce({"local", "# local: fast\n"});
  outcomes.read_on();
  EXPECT_EQ(outcomes.starts(), 1);
  EXPECT_EQ(outcomes.notices().size(), 1u);
}

TEST_F(OutcomesFile, TakesTurnsWithOthersAndPassesOverHalfALine) {
  Outcomes starter(path_), launch(path_);
  starter.start_launch(1);
  launch.begin(0);
  std::ofstream(path_, std::ios::app) << R"({"case":0,"rec)";
  MadeRun{options_, starter}.fails(0, "rank 1 died");
  starter.start_launch(1);
  launch.read_on();
  for (const Outcomes* one : {&starter, &launch}) {
    EXPECT_EQ(one->outcome(1, 0)->state, State::failed);
    EXPECT_EQ(one->starts(), 2);
    EXPECT_FALSE(one->unfinished());
  }
}

TEST_F(OutcomesFile, KeepsWhatARowShowsAndNoTimesOfRanks) {
  Outcomes outcomes;
  outcomes.start_launch(1);
  Record record;
  record.bench_case = options_.cases[0];
  record.samples.seconds = {1, 2};
  record.samples.rank_seconds = {{1, 1}, {0, 2}};
  outcomes.end(0, record);
  EXPECT_TRUE(outcomes.outcome(1, 0)->row.samples.rank_seconds.empty());
  EXPECT_EQ(outcomes.outcome(1, 0)->row.rounds_as_last(), record.rounds_as_last());
}

class Resumed : public OutcomesFile {
 protected:
  /// The line of a record of a case, as a bench of this commit writes it in `launch`.
  std::string line(int index, int launch, std::vector<double> seconds, const std::string& commit = "abc",
                   const std::string& run = "the run") {
    Record record;
    record.warmup = 5;
    record.rounds = 20;
    record.bench_case = options_.cases[index];
    record.samples.seconds = std::move(seconds);
    if (record.is_timed()) record.summary = summarise(record.samples.seconds);
    return line_of(
        json_of(record, {.machine = {.host = "here"}, .commit = commit, .run = run, .launch = launch}));
  }
  void resume(Outcomes& outcomes, const std::string& lines, const Origin& here = {"here", "abc"}) {
    std::ofstream(path_) << lines;
    outcomes.resume(path_, options_.cases, 2, here);
  }
  /// Why it refuses to; empty if it does not.
  std::string refusal(const std::string& lines, const Origin& here = {"here", "abc"}) {
    try {
      Outcomes outcomes;
      resume(outcomes, lines, here);
      return {};
    } catch (const UsageError& error) {
      return error.what();
    }
  }
};

TEST_F(Resumed, ResumesFromAFileAlone) {
  Outcomes outcomes(path_);
  for (const char* odd : {"/", "/dev/zero", "no such file"})
    EXPECT_THROW(outcomes.resume(odd, options_.cases, 2, {"here", "abc"}), UsageError) << odd;
}

TEST_F(Resumed, TakesOverTimesOfCasesThatThereAre) {
  Outcomes outcomes;
  resume(outcomes,
         line(2, 1, {4, 5}) + "\n" + R"({"case":"another"})" + "\nno record\n" + line(0, 2, {6}) + "\n");
  EXPECT_EQ(outcomes.run(), "the run");
  EXPECT_EQ(outcomes.outcome(1, 2)->seconds(), (std::vector<double>{4, 5}));
  EXPECT_EQ(outcomes.outcome(2, 0)->seconds(), std::vector<double>{6});
  EXPECT_EQ(outcomes.ended(), 2u);
}

TEST_F(Resumed, NamesTheLineThatItRefuses) {
  EXPECT_THAT(refusal("\n" + line(0, 1, {1}) + "\n", {"elsewhere", "abc"}),
              HasSubstr("line 2: its host is 'here'"));
  EXPECT_THAT(refusal(line(0, 3, {1})), HasSubstr("beyond --launches"));
  EXPECT_THAT(refusal(line(0, 1, {})), HasSubstr("'seconds'"));
  EXPECT_EQ(refusal(line(0, 1, {1})), "");
}

TEST_F(Resumed, TakesTheLastRunOfAFileOfSeveral) {
  Outcomes outcomes;
  resume(outcomes, line(0, 1, {1}, "old", "one") + "\n" + line(0, 7, {2}, "abc", "another") + "\n" +
                       line(1, 1, {3}, "abc", "the last") + "\n");
  EXPECT_EQ(outcomes.run(), "the last");
  EXPECT_EQ(outcomes.ended(), 1u);
  EXPECT_EQ(outcomes.outcome(1, 1)->seconds(), std::vector<double>{3});
}

TEST_F(Resumed, TakesNothingOfOtherRounds) {
  EXPECT_THAT(refusal(line(0, 1, {1}), {"here", "abc", 5, 50}),
              HasSubstr("line 1: its number of measured rounds is '20', and that of this run is '50'"));
  EXPECT_THAT(refusal(line(0, 1, {1}), {"here", "abc", 0, 20}),
              HasSubstr("its number of warm-up rounds is '5'"));
  EXPECT_EQ(refusal(line(0, 1, {1}), {"here", "abc", 5, 20}), "");
}

TEST(Launches, EveryOtherOneIsReversedHoweverManyThereAre) {
  Outcomes outcomes;
  for (const int launch : {1, 2, 3, 4}) {
    outcomes.start_launch(launch);
    EXPECT_EQ(outcomes.is_reversed(), launch == 2 || launch == 4) << launch;
  }
}

TEST_F(Resumed, TakesNothingOfAnotherBuild) {
  const auto of = [&](const std::string& theirs, const std::string& ours) {
    return refusal(line(0, 1, {1}, theirs), {"here", ours});
  };
  EXPECT_THAT(of("abc", "abd"), HasSubstr("its commit is 'abc', and that of this run is 'abd'"));
  EXPECT_THAT(of("abc-dirty-1", "abc-dirty-2"), HasSubstr("its commit is 'abc-dirty-1'"));
  EXPECT_THAT(of("abc-dirty", "abc-dirty-2"), HasSubstr("its commit is 'abc-dirty'"));
  EXPECT_EQ(of("abc-dirty-1", "abc-dirty-1"), "");
  EXPECT_THAT(of("unknown", "unknown"), HasSubstr("its commit is unknown"));
  EXPECT_THAT(of("unknown", "abc"), HasSubstr("its commit is 'unknown'"));
}

}  // namespace
