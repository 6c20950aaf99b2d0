// SPDX-License-Identifier: Apache-2.0
// What the mpi executor promises beyond what all executors by an engine do; host/engine_test.cpp
// has the main of this program. Skipped where the ranks run without MPI.
#include "collectives/executors/executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

constexpr int ranks = 4;

class MpiExecutor : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal lack = find_executor("mpi").lacking(ranks)) GTEST_SKIP() << lack.reason();
  }
};

TEST_F(MpiExecutor, TeamsGatherAndBroadcastByMessagesOfTheirOwn) {
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  for (int members = 1; members <= ranks; ++members) {
    if (world_rank >= members) continue;
    const Communicator team(members, Communicator::Use::team);
    const std::vector<int> mine{team.rank(), 10 * team.rank()};
    std::vector<int> all(2 * members);
    team.gather(all.data(), mine.data(), mine.size() * sizeof(int));
    team.gather(nullptr, nullptr, 0);
    for (int rank = 0; rank < members; ++rank) {
      EXPECT_EQ(all[2 * rank], rank) << members;
      EXPECT_EQ(all[2 * rank + 1], 10 * rank) << members;
      std::vector<int> said(3, team.rank() == rank ? 7 + rank : -1);
      team.broadcast(said.data(), said.size() * sizeof(int), rank);
      EXPECT_EQ(said, std::vector<int>(3, 7 + rank)) << "from " << rank << " of " << members;
    }
  }
}

/// Set by the native below, on the thread that communicates.
std::atomic<bool> answer_came = false;
const RegisteredMpiNative notes_the_answer{"note_the_answer", [](const MpiCall&) {
                                             answer_came = true;
                                             answer_came.notify_all();
                                           }};

TEST_F(MpiExecutor, MessagesGoOnWhileAKernelRuns) {
  // Rank 0's kernel ends when rank 1's answer has come: if messages waited for kernels, this would
  // never end.
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r) {
    Schedule s(r, ranks);
    const Slice own = s.input("own", 1), into = s.output("into", 1, r == 0), ball = s.scratch("ball", 1);
    if (r == 0) {
      s.compute({"waits", [](const HostOperands&) { answer_came.wait(false); }}, {ball}, {});
      s.send(1, own);
      s.recv(into, 1);
      s.native("note_the_answer", 1, {}, {into});
    }
    if (r == 1) {
      s.recv(ball, 0);
      s.send(0, ball);
    }
    schedules.push_back(std::move(s));
  }
  const auto executor = find_executor("mpi").make(ranks);
  const int rank = executor->local_ranks().front();
  executor->prepare(schedules);
  executor->write(rank, {0, 0, 1}, std::vector{7.0f});
  executor->run();
  std::vector<float> got(1);
  executor->read(got, rank, {1, 0, 1});
  EXPECT_EQ(got[0], rank == 0 ? 7.0f : 0.0f);
}

TEST_F(MpiExecutor, RefusesASecondNativeOfAName) {
  const auto again = [](const MpiCall&) {};
  EXPECT_THROW(mpi_natives().add("note_the_answer", again), UsageError);
  EXPECT_EQ(mpi_natives().find("no_such_native"), nullptr);
}

TEST_F(MpiExecutor, CountsFromTheOtherEnd) {
  const int rank = Communicator(ranks, Communicator::Use::control).rank();
  EXPECT_EQ(Communicator(ranks, Communicator::Use::in_reverse).rank(), ranks - 1 - rank);
}

TEST_F(MpiExecutor, RefusesNativesThatItDoesNotHave) {
  Schedule s(0, 1);
  s.native("no_such_native", 1, {}, {});
  const std::vector<Schedule> schedules{s};
  EXPECT_EQ(find_executor("mpi").make(ranks)->unsupported(schedules).reason(),
            "no_such_native is no native of mpi");
}

TEST_F(MpiExecutor, RefusesMessagesThatMpiCannotCount) {
  Schedule s(0, 2);
  s.send(1, s.input("own", std::int64_t{1} << 31));
  const std::vector<Schedule> schedules{s};
  const auto executor = find_executor("mpi").make(ranks);
  EXPECT_NE(executor->unsupported(schedules).reason(), "");
}

}  // namespace
