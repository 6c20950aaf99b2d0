// SPDX-License-Identifier: Apache-2.0
#include "harness/process/launch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "harness/process/started_ranks.hpp"
#include "tests/scratch_folder.hpp"

namespace {

using namespace baton;

TEST(RunLaunch, SparesTheChildrenThatTheProcessHadBefore) {
  const pid_t before = fork();
  if (before == 0) {
    pause();
    _exit(0);
  }
  // The launch leaves a process of its own behind.
  const LaunchEnd end = run_launch({"sh", "-c", "sleep 600 2> /dev/null & exit 3"});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(children_of(), std::vector<pid_t>{before});
  kill(before, SIGKILL);
  waitpid(before, nullptr, 0);
}

TEST(RunLaunch, HasTheWordsOfALauncherThatEndsWell) {
  const std::string rule(74, '-');
  const LaunchEnd end =
      run_launch({"sh", "-c", "printf '%s\\nThere is no room.\\n%s\\n' " + rule + " " + rule + " >&2"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.launcher_words, "There is no room.");
  EXPECT_EQ(end.cause(), "There is no room.");
}

TEST(RunLaunch, HasTheReportsOfItsProcesses) {
  const ScratchFolder folder;
  const std::string path = folder.file("messages");
  std::ofstream(path) << R"({"what":"died","rank":0})"
                      << "\n";  // of the launch before
  const std::string report = R"({"what":"died","rank":1})";
  const LaunchEnd end =
      run_launch({"sh", "-c", "echo '" + report + "' >> " + path + "; exit 3"}, {.file = path});
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.reports.size(), 1u);
  EXPECT_EQ(end.cause(), "rank 1 died");
}

TEST(RunLaunch, ReportsACommandThatCannotStart) {
  const ScratchFolder folder;
  const LaunchEnd end = run_launch({"/nonexistent/mpiexec"}, {.file = folder.file("messages")});
  EXPECT_EQ(end.exit_code, 127);
  EXPECT_EQ(end.cause(), "cannot start /nonexistent/mpiexec: No such file or directory");
}

}  // namespace
