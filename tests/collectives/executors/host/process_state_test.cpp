// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/host/process_state.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace baton;

TEST(ProcessState, FollowsAChildToItsEnd) {
  const pid_t child = fork();
  if (child == 0)
    while (true) pause();
  EXPECT_EQ(state_of(child), ProcessState::runs);
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  EXPECT_EQ(state_of(child), ProcessState::stopped);
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);  // it stays there, ended
  EXPECT_EQ(state_of(child), ProcessState::gone);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(state_of(child), ProcessState::gone);
}

TEST(ProcessState, ThisProcessRuns) { EXPECT_EQ(state_of(getpid()), ProcessState::runs); }

}  // namespace
