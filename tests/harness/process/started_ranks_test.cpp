// SPDX-License-Identifier: Apache-2.0
#include "harness/process/started_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace {

using namespace baton;

/// A child of this process that Open MPI might have started as `rank`. It ends with this value.
class Child {
 public:
  explicit Child(int rank) : process_(fork()) {
    if (process_ != 0) return;
    const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
    execlp("env", "env", variable.c_str(), "sleep", "600", nullptr);
    _exit(127);
  }
  ~Child() {
    send(SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { kill(process_, signal); }

 private:
  pid_t process_;
};

/// Waits until a rank that was known has ended.
void wait_for_end(StartedRanks& ranks) {
  std::vector<pollfd> polled;
  ranks.add_to(polled);
  ASSERT_GT(poll(polled.data(), polled.size(), 60'000), 0);
  ranks.look();
}

TEST(StartedRanks, TellWhichEndedFirstAndWhichAreStopped) {
  const Child one(1), zero(0);
  StartedRanks ranks(getpid(), 2);
  for (int looks = 0; !ranks.are_all_known() && looks < 6000; ++looks) {
    ranks.look();
    usleep(10'000);
  }
  ASSERT_TRUE(ranks.are_all_known());
  EXPECT_FALSE(ranks.first_ended());
  zero.send(SIGSTOP);
  siginfo_t what;
  waitid(P_ALL, 0, &what, WSTOPPED | WNOWAIT);
  EXPECT_THAT(ranks.stopped(), testing::ElementsAre(0));
  one.send(SIGKILL);
  wait_for_end(ranks);
  EXPECT_EQ(ranks.first_ended(), 1);
  EXPECT_FALSE(ranks.have_all_ended());
  zero.send(SIGKILL);
  wait_for_end(ranks);
  EXPECT_EQ(ranks.first_ended(), 1);
  EXPECT_TRUE(ranks.have_all_ended());
}

TEST(StartedRanks, HaveAllEndedThoughSomeWereNeverKnown) {
  const Child one(1);
  StartedRanks ranks(getpid(), 2);
  std::vector<pollfd> known;
  for (int looks = 0; known.empty() && looks < 6000; ++looks) {
    ranks.look();
    ranks.add_to(known);
    usleep(10'000);
  }
  EXPECT_FALSE(ranks.have_all_ended());
  one.send(SIGKILL);
  wait_for_end(ranks);
  EXPECT_TRUE(ranks.have_all_ended());
}

TEST(StartedRanks, AreKnownWhereThereAreNone) {
  StartedRanks none(getpid(), 0);
  none.look();
  EXPECT_TRUE(none.are_all_known());
  EXPECT_FALSE(none.have_all_ended());
  EXPECT_FALSE(none.are_gone());
}

}  // namespace
