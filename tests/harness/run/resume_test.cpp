// SPDX-License-Identifier: Apache-2.0
#include "harness/run/resume.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collectives/schedule/errors.hpp"
#include "tests/harness/run/made_run.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

class Resumed : public testing::Test {
 protected:
  /// The line of a record of a case, as a bench of this commit writes it in `launch`.
  std::string line(int index, int launch, std::vector<double> seconds, const std::string& commit = "abc",
                   const std::string& run = "the run") {
    MadeCase made = made_case(std::move(seconds));
    made.bench_case = options_.cases[index];
    made.warmup = 5;
    made.rounds = 20;
    Result result = made.result();
    result.set("machine", Result::Json{{"host", "here"}});
    result.set("commit", commit);
    result.set("run", run);
    result.set("launch", launch);
    return result.line();
  }
  std::vector<KnownResult> known(const std::string& lines, const Origin& here = {"here", "abc"}) {
    std::ofstream(path_) << lines;
    return known_results(path_, options_.cases, 2, here);
  }
  /// Why it refuses to; empty if it does not.
  std::string refusal(const std::string& lines, const Origin& here = {"here", "abc"}) {
    try {
      known(lines, here);
      return {};
    } catch (const UsageError& error) {
      return error.what();
    }
  }

  const ScratchFolder scratch_;
  const std::string path_ = scratch_.file("records");
  Options options_ = made_options();
};

TEST_F(Resumed, ReadsFilesAlone) {
  for (const char* odd : {"/", "/dev/zero", "no such file"})
    EXPECT_THROW(known_results(odd, options_.cases, 2, {"here", "abc"}), UsageError) << odd;
}

TEST_F(Resumed, TakesOverTimesOfCasesThatThereAre) {
  const auto found =
      known(line(2, 1, {4, 5}) + "\n" + R"({"case":"another"})" + "\nno record\n" + line(0, 2, {6}) + "\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, 2);
  EXPECT_EQ(found[0].launch, 1);
  EXPECT_EQ(found[0].result.value<std::vector<double>>("seconds"), (std::vector<double>{4, 5}));
  EXPECT_EQ(found[1].index, 0);
  EXPECT_EQ(found[1].launch, 2);
  EXPECT_EQ(found[1].result.text("run"), "the run");
}

TEST_F(Resumed, NamesTheLineThatItRefuses) {
  EXPECT_THAT(refusal("\n" + line(0, 1, {1}) + "\n", {"elsewhere", "abc"}),
              HasSubstr("line 2: its host is 'here'"));
  EXPECT_THAT(refusal(line(0, 3, {1})), HasSubstr("beyond --launches"));
  EXPECT_THAT(refusal(line(0, 1, {})), HasSubstr("'seconds'"));
  EXPECT_EQ(refusal(line(0, 1, {1})), "");
}

TEST_F(Resumed, TakesTheLastRunOfAFileOfSeveral) {
  const auto found = known(line(0, 1, {1}, "old", "one") + "\n" + line(0, 7, {2}, "abc", "another") + "\n" +
                           line(1, 1, {3}, "abc", "the last") + "\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].result.text("run"), "the last");
  EXPECT_EQ(found[0].index, 1);
}

TEST_F(Resumed, TakesNothingOfOtherRounds) {
  EXPECT_THAT(refusal(line(0, 1, {1}), {"here", "abc", 5, 50}),
              HasSubstr("line 1: its number of measured rounds is '20', and that of this run is '50'"));
  EXPECT_THAT(refusal(line(0, 1, {1}), {"here", "abc", 0, 20}),
              HasSubstr("its number of warm-up rounds is '5'"));
  EXPECT_EQ(refusal(line(0, 1, {1}), {"here", "abc", 5, 20}), "");
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
