// SPDX-License-Identifier: Apache-2.0
#include "harness/process/error_lines.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton;

const std::string rule = std::string(74, '-') + "\n";
const std::string epilogue =
    rule + "mpirun detected that one or more processes exited with non-zero status, thus causing\n" +
    "the job to be terminated. The first process to do so was:\n\n  Exit code: 1\n" + rule;

std::string notice(const std::string& text) { return rule + text + rule; }

ErrorLines read(const std::string& text) {
  ErrorLines lines;
  lines.add(text);
  return lines;
}

TEST(ErrorLines, HaveTheDeathThatTheLauncherTells) {
  const ErrorLines lines = read(notice(
      "mpiexec noticed that process rank 1 with PID 4711 on node host exited on signal 9 (Killed).\n"));
  EXPECT_EQ(lines.dead_rank(), 1);
  EXPECT_EQ(lines.signal(), "signal 9 (Killed)");
  EXPECT_EQ(lines.launcher_words(), "");
}

TEST(ErrorLines, ANoticeOfTheLauncherIsOneLine) {
  const std::string text =
      "A request was made to bind to that would result in binding more\n"
      "processes than cpus on a resource:\n\n   Bind to:     CORE\n";
  EXPECT_EQ(read(notice(text) + epilogue).launcher_words(),
            "A request was made to bind to that would result in binding more processes than cpus on a "
            "resource: Bind to: CORE");
}

TEST(ErrorLines, TheNoticeThatNamesTheCauseComesBeforeThoseThatFollowIt) {
  const std::string cause = "A call to mkdir was unable to create the desired directory:\n";
  const std::string follows = "It looks like orte_init failed for some reason; your parallel process is\n";
  const std::string trace =
      "[vm:19929] [[8487,0],0] ORTE_ERROR_LOG: Error in file session_dir.c at line 107\n";
  EXPECT_EQ(read(notice(cause) + trace + notice(follows)).launcher_words(),
            "A call to mkdir was unable to create the desired directory:");
  EXPECT_EQ(read(notice(follows)).launcher_words(),
            "It looks like orte_init failed for some reason; your parallel process is");
}

TEST(ErrorLines, ALineOfTheLauncherMayNameTheCause) {
  EXPECT_EQ(
      read("[vm:19906] opal_ifinit: unable to find network interfaces.\n"
           "[vm:19906] pmix_ifinit: unable to find network interfaces.\n" +
           notice("The PMIx server's listener thread failed to start. We cannot\ncontinue.\n"))
          .launcher_words(),
      "opal_ifinit: unable to find network interfaces. The PMIx server's listener thread failed to start. "
      "We cannot continue.");
  EXPECT_EQ(read("[vm:1] *** Process received signal ***\n[vm:1] 3 more processes have sent help message a\n")
                .launcher_words(),
            "");
}

TEST(ErrorLines, ANoticeMayStandBetweenStars) {
  const std::string stars = std::string(58, '*') + "\n";
  EXPECT_EQ(read(stars + "\nmpiexec does not support recursive calls\n\n" + stars).launcher_words(),
            "mpiexec does not support recursive calls");
}

TEST(ErrorLines, TheRestPassesThrough) {
  testing::internal::CaptureStderr();
  read(
      "a warning of a library\n[warn] Epoll MOD(1) on fd 25 failed. Old events were 6\n"
      "mpiexec: abort is already in progress...hit ctrl-c again to forcibly terminate\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a warning of a library\n");
}

}  // namespace
