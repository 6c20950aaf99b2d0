// SPDX-License-Identifier: Apache-2.0
// What the mpi executor promises beyond right results, on four ranks that this test launches.
#include "collectives/executors/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/executors/mpi/engine.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/process/world.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"
#include "tests/relaunch.hpp"

namespace {

using namespace baton;

constexpr int ranks = 4;

const World* the_world = nullptr;  // set by main

/// Every rank sends `messages` numbered values to the next; the receiver records its receives in
/// another order of buffers than they are sent in.
std::vector<Schedule> numbered_messages(int messages) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r) {
    Schedule s(r, ranks);
    const Slice own = s.input("own", messages), into = s.output("into", messages);
    for (int i = 0; i < messages; ++i) {
      s.send((r + 1) % ranks, own.part(i, 1));
      s.recv(into.part(messages - 1 - i, 1), (r + ranks - 1) % ranks);
    }
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST(MpiExecutor, MatchesMessagesInTheOrderOfRecording) {
  constexpr int messages = 100;
  const auto executor = find_executor("mpi").make(ranks);
  executor->prepare(numbered_messages(messages));
  const int rank = executor->local_ranks().front(), before = (rank + ranks - 1) % ranks;
  std::vector<float> own(messages), into(messages);
  for (int i = 0; i < messages; ++i) own[i] = static_cast<float>(1000 * rank + i);
  executor->write(rank, {0, 0, messages}, own);
  executor->run();
  executor->read(into, rank, {1, 0, messages});
  for (int i = 0; i < messages; ++i) EXPECT_EQ(into[messages - 1 - i], static_cast<float>(1000 * before + i));
}

TEST(MpiExecutor, RunsRoundAfterRoundWithoutSynchronising) {
  const auto& collective = find_collective("ring_exchange");
  const auto executor = find_executor("mpi").make(ranks);
  const Shape shape{1, 2, 2, 64};
  executor->prepare(build_all(collective, shape, {.ranks = ranks}));
  const int rank = executor->local_ranks().front();
  const std::vector<float> own(shape.key_value_elements(), static_cast<float>(rank));
  executor->write(rank, {0, 0, shape.key_value_elements()}, own);
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  for (int round = 0; round < 200; ++round) seconds += executor->run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, took.count()) << "each round tells its own time alone";
  std::vector<float> into(own.size());
  executor->read(into, rank, {1, 0, shape.key_value_elements()});
  EXPECT_EQ(into, std::vector<float>(own.size(), static_cast<float>((rank + 1) % ranks)));
}

/// Set by the native below, on the thread that communicates.
std::atomic<bool> answer_came = false;
const RegisteredMpiNative notes_the_answer{"note_the_answer", [](const MpiCall&) {
                                             answer_came = true;
                                             answer_came.notify_all();
                                           }};

TEST(MpiExecutor, MessagesGoOnWhileAKernelRuns) {
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

/// The times of all ranks, each of which has as many steps.
std::vector<StepTime> gathered(const std::vector<StepTime>& mine) {
  std::vector<double> row;
  for (const StepTime& time : mine)
    row.insert(row.end(), {time.rank + 0.0, time.step + 0.0, time.start_seconds, time.finish_seconds});
  std::vector<StepTime> all;
  for (const auto& values : the_world->all().gather(row))
    for (std::size_t i = 0; i < values.size(); i += 4)
      all.push_back(
          {static_cast<int>(values[i]), static_cast<int>(values[i + 1]), values[i + 2], values[i + 3]});
  return all;
}

TEST(MpiExecutor, TellsWhenEachStepRan) {
  const auto schedules = traced_ring(ranks);
  const auto executor = find_executor("mpi").make(ranks);
  executor->prepare(schedules);
  for (int round = 0; round < 20; ++round) {
    executor->synchronise();
    const auto start = std::chrono::steady_clock::now();
    const auto times = gathered(executor->run_traced());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double longest = the_world->all().max(took.count());
    expect_possible(schedules, times);
    const auto sooner = [](const StepTime& a, const StepTime& b) {
      return a.start_seconds < b.start_seconds;
    };
    EXPECT_LE(std::min_element(times.begin(), times.end(), sooner)->start_seconds, longest)
        << "times count from the start of the round";
    executor->run();
  }
}

TEST(MpiExecutor, RefusesASecondNativeOfAName) {
  const auto again = [](const MpiCall&) {};
  EXPECT_THROW((RegisteredMpiNative{"note_the_answer", again}), UsageError);
  EXPECT_EQ(mpi_natives().find("no_such_native"), nullptr);
}

TEST(Communicator, GathersReducesAndAgrees) {
  const Communicator control(ranks, Communicator::Use::control);
  const int rank = control.rank();
  EXPECT_EQ(Communicator(ranks, Communicator::Use::in_reverse).rank(), ranks - 1 - rank);
  EXPECT_EQ(control.gather(rank), (std::vector{0, 1, 2, 3}));
  const double r = rank;
  EXPECT_EQ(control.gather(std::vector{r, -r})[2], (std::vector{2.0, -2.0}));
  EXPECT_EQ(control.min(r), 0);
  EXPECT_EQ(control.max(r), 3);
  EXPECT_EQ(control.sum(rank), 6);
  EXPECT_TRUE(control.all(true));
  EXPECT_FALSE(control.all(rank != 2));
  EXPECT_TRUE(control.any(rank == 2));
  EXPECT_EQ(control.first(rank < 2 ? "" : "rank " + std::to_string(rank)), "rank 2");
  EXPECT_EQ(control.first(""), "");
  int told = rank;
  control.broadcast(&told, sizeof told);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(control.host().size, ranks) << "this test launches all ranks here";
}

TEST(MpiExecutor, RefusesNativesThatItDoesNotHave) {
  Schedule s(0, 1);
  s.native("no_such_native", 1, {}, {});
  const std::vector<Schedule> schedules{s};
  EXPECT_EQ(find_executor("mpi").make(ranks)->unsupported(schedules).reason(),
            "no_such_native is no native of mpi");
}

TEST(MpiExecutor, RefusesMessagesThatMpiCannotCount) {
  Schedule s(0, 2);
  s.send(1, s.input("own", std::int64_t{1} << 31));
  const std::vector<Schedule> schedules{s};
  const auto executor = find_executor("mpi").make(ranks);
  EXPECT_NE(executor->unsupported(schedules).reason(), "");
}

TEST(MpiExecutor, NobodyLeavesTheBarrierBeforeTheLastHasCome) {
  const auto executor = find_executor("mpi").make(ranks);
  const int rank = executor->local_ranks().front();
  for (int late = 0; late < ranks; ++late) {
    executor->synchronise();
    const auto start = std::chrono::steady_clock::now();
    if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    executor->synchronise();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40))
        << "rank " << late << " was late";
  }
}

TEST(MpiExecutor, TimesMessagesBetweenTwoRanksOnly) {
  const auto executor = find_executor("mpi").make(ranks);
  const int rank = executor->local_ranks().front();
  const double seconds = executor->one_way_seconds(1 << 16, 1, 2);
  EXPECT_EQ(seconds > 0, rank == 1 || rank == 2);
}

}  // namespace

int main(int argc, char** argv) {
  return baton::exit_code_of([&] {
    int result = 1;
    baton::relaunch(ranks, argv);
    baton::run_in_world(&argc, &argv, [&](const baton::World& world) {
      world.require(ranks);
      the_world = &world;
      testing::InitGoogleTest(&argc, argv);
      result = RUN_ALL_TESTS();
    });
    return result;
  });
}
