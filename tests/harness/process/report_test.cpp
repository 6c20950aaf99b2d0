// SPDX-License-Identifier: Apache-2.0
#include "harness/process/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;
using What = Report::What;

/// Reports that a child process sends: where they go is a setting of a process.
std::vector<Report> sent(const std::function<void()>& send) {
  const ScratchFolder folder;
  const std::string path = folder.file("reports");
  if (const pid_t child = fork(); child == 0) {
    report_into(path);
    send();
    _exit(0);
  } else {
    waitpid(child, nullptr, 0);
  }
  return reports_in(path, 0);
}

Report waiting(What what) {
  Report report{.what = what, .rank = 1, .step = 3, .waits_for = 0};
  report.part << "all_scan/mpi/ranks:2";
  return report;
}

TEST(Report, IsReceivedAsItWasSent) {
  for (const What what : {What::died, What::gone, What::stopped, What::lost, What::waited, What::exceeded,
                          What::ended, What::ended_first, What::was}) {
    const auto found = sent([&] { waiting(what).send(); });
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].what, what);
    EXPECT_EQ(found[0].rank, 1);
    EXPECT_EQ(found[0].step, 3);
    EXPECT_EQ(found[0].waits_for, 0);
    EXPECT_FALSE(found[0].between_rounds);
    EXPECT_EQ(found[0].part.view(), "all_scan/mpi/ranks:2");
    EXPECT_EQ(found[0].sentence().view(), waiting(what).sentence().view());
  }
}

TEST(Report, KeepsQuotationMarksOfAnError) {
  const std::string text = R"(cannot open "a\b" of 'c')";
  const auto found = sent([&] {
    Report{.what = What::was, .rank = 0, .between_rounds = true}.send();
    Report error;
    error.text << text;
    error.send();
  });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].between_rounds);
  EXPECT_EQ(found[1].what, What::error);
  EXPECT_FALSE(found[1].rank);
  EXPECT_EQ(found[1].sentence().view(), text);
}

TEST(Report, IsFoundBetweenOtherLinesBehindAPlace) {
  const ScratchFolder folder;
  const std::string path = folder.file("messages"), before = R"({"what":"died","rank":0})"
                                                             "\n";
  std::ofstream(path) << before
                      << R"({"begins":3})"
                         "\n"
                         R"({"what":"died","rank":1})"
                         "\n"
                         R"({"what":"is st)";
  const auto found = reports_in(path, before.size());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_TRUE(reports_in(folder.file("none"), 0).empty());
}

TEST(Report, IsASentenceThatNeedNotNameWhatIsKnown) {
  const Report report = waiting(What::exceeded);
  EXPECT_EQ(report.sentence().view(),
            "rank 1 exceeded the time limit in all_scan/mpi/ranks:2 at step 3, waiting for rank 0");
  EXPECT_EQ(report.sentence(report.part.view()).view(),
            "rank 1 exceeded the time limit at step 3, waiting for rank 0");
}

TEST(Report, IsPrintedWhereNoProcessTakesIt) {
  testing::internal::CaptureStderr();
  waiting(What::died).send();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "baton: rank 1 died in all_scan/mpi/ranks:2 at step 3, waiting for rank 0\n");
}

TEST(Report, ThatIsTooLongForALineIsPrinted) {
  Report error;
  error.text << std::string(1500, '"');
  testing::internal::CaptureStderr();
  EXPECT_TRUE(sent([&] { error.send(); }).empty());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::StartsWith("baton: \"\"\""));
}

TEST(Line, CutsWhatIsTooLong) {
  Line line;
  line << 4711 << " " << std::string(5000, 'x') << "y";
  EXPECT_TRUE(line.view().starts_with("4711 xxx"));
  EXPECT_LT(line.view().size(), 5000u);
  EXPECT_TRUE(line.view().ends_with('x'));
}

}  // namespace
