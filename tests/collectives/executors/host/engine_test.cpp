// SPDX-License-Identifier: Apache-2.0
// What the executors by an engine promise beyond right results, and what a team tells, on four
// ranks that this test launches, or that were launched without MPI.
#include "collectives/executors/host/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/executor.hpp"
#include "collectives/executors/team.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/process/exit_codes.hpp"
#include "harness/process/world.hpp"
#include "tests/collectives/simulator/timeline_check.hpp"
#include "tests/relaunch.hpp"

namespace {

using namespace baton;

constexpr int ranks = 4;

const World* the_world = nullptr;  // set by main

class EngineExecutors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const Refusal lack = find_executor(GetParam()).lacking(ranks)) GTEST_SKIP() << lack.reason();
  }
  std::unique_ptr<Executor> executor_under_test() const { return find_executor(GetParam()).make(ranks); }
};

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

TEST_P(EngineExecutors, MatchesMessagesInTheOrderOfRecording) {
  constexpr int messages = 100;
  const auto executor = executor_under_test();
  executor->prepare(numbered_messages(messages));
  const int rank = executor->local_ranks().front(), before = (rank + ranks - 1) % ranks;
  std::vector<float> own(messages), into(messages);
  for (int i = 0; i < messages; ++i) own[i] = static_cast<float>(1000 * rank + i);
  executor->write(rank, {0, 0, messages}, own);
  executor->run();
  executor->read(into, rank, {1, 0, messages});
  for (int i = 0; i < messages; ++i) EXPECT_EQ(into[messages - 1 - i], static_cast<float>(1000 * before + i));
}

/// Every rank doubles `numbers` values, each by a kernel of its own, and passes them to the next.
std::vector<Schedule> doubled_numbers(int numbers) {
  const Kernel twice{.name = "twice", .body = [](const HostOperands& operands) {
                       operands.writes[0][0] = 2 * operands.reads[0][0];
                     }};
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r) {
    Schedule s(r, ranks);
    const Slice own = s.input("own", numbers), into = s.output("into", numbers);
    const Slice doubled = s.scratch("doubled", numbers);
    for (int i = 0; i < numbers; ++i) {
      s.compute(twice, {doubled.part(i, 1)}, {own.part(i, 1)});
      s.send((r + 1) % ranks, doubled.part(i, 1));
      s.recv(into.part(i, 1), (r + ranks - 1) % ranks);
    }
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST_P(EngineExecutors, OneThreadComputesWhatTwoDo) {
  constexpr int numbers = 50;
  const auto executor = executor_under_test();
  const int rank = executor->local_ranks().front(), before = (rank + ranks - 1) % ranks;
  std::vector<float> own(numbers), into(numbers);
  for (int i = 0; i < numbers; ++i) own[i] = static_cast<float>(1000 * rank + i);
  for (const int threads : {1, 2}) {
    executor->use_threads(threads);
    executor->prepare(doubled_numbers(numbers));
    executor->write(rank, {0, 0, numbers}, own);
    for (int round = 0; round < 3; ++round) executor->run();
    executor->read(into, rank, {1, 0, numbers});
    for (int i = 0; i < numbers; ++i) EXPECT_EQ(into[i], static_cast<float>(2 * (1000 * before + i)));
  }
}

TEST_P(EngineExecutors, RunsRoundAfterRoundWithoutSynchronising) {
  const auto& collective = find_collective("ring_exchange");
  const auto executor = executor_under_test();
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

TEST_P(EngineExecutors, TellsWhenEachStepRan) {
  const auto schedules = traced_ring(ranks);
  const auto executor = executor_under_test();
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

TEST_P(EngineExecutors, NobodyLeavesTheBarrierBeforeTheLastHasCome) {
  const auto executor = executor_under_test();
  const int rank = executor->local_ranks().front();
  for (int late = 0; late < ranks; ++late) {
    executor->synchronise();
    if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double came = monotonic_seconds();
    executor->synchronise();
    const double left = monotonic_seconds();
    EXPECT_GE(left, the_world->all().max(came)) << "rank " << late << " was late";
  }
}

TEST_P(EngineExecutors, TimesMessagesBetweenTwoRanksOnly) {
  const auto executor = executor_under_test();
  const int rank = executor->local_ranks().front();
  const double seconds = executor->one_way_seconds(1 << 16, 1, 2);
  EXPECT_EQ(seconds > 0, rank == 1 || rank == 2);
}

TEST_P(EngineExecutors, TimesMessagesOfAnySize) {
  const auto executor = executor_under_test();
  const int rank = executor->local_ranks().front();
  for (const std::int64_t bytes : {0, 1, 8, 1 << 20})
    for (int repeat = 0; repeat < 3; ++repeat) {
      const double seconds = executor->one_way_seconds(bytes, 3, 0);
      EXPECT_EQ(seconds > 0, rank == 0 || rank == 3) << bytes;
    }
}

/// Rank 0 sends numbers that tell the round and the message, and goes on as soon as they are gone.
/// Rank 1 receives the first of them behind a long kernel, and records the others in reverse.
std::vector<Schedule> one_way_flood(int messages, std::int64_t elements, int milliseconds) {
  std::vector<Schedule> schedules;
  for (int r = 0; r < ranks; ++r) {
    Schedule s(r, ranks);
    const Slice own = s.input("own", messages * elements);
    const Slice into = s.output("into", messages * elements, r == 1), pause = s.scratch("pause", 1);
    if (r == 1)
      s.compute({"sleeps",
                 [milliseconds](const HostOperands&) {
                   std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                 }},
                {pause}, {});
    for (int i = 0; i < messages && r == 0; ++i) s.send(1, own.part(i * elements, elements));
    for (int i = 0; i < messages && r == 1; ++i) {
      const Slice part = into.part((messages - 1 - i) * elements, elements);
      if (i == 0) s.copy(part.part(0, 1), pause);
      s.recv(part, 0);
    }
    schedules.push_back(std::move(s));
  }
  return schedules;
}

TEST_P(EngineExecutors, ASenderThatRunsAheadIsHeld) {
  constexpr int messages = 6, rounds = 12;
  constexpr std::int64_t elements = 50000;
  const auto executor = executor_under_test();
  executor->prepare(one_way_flood(messages, elements, 2));
  const int rank = executor->local_ranks().front();
  std::vector<float> values(messages * elements);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(1000 * round + i / elements);
    if (rank == 0) executor->write(0, {0, 0, messages * elements}, values);
    executor->run();
    if (rank != 1) continue;
    executor->read(values, 1, {1, 0, messages * elements});
    for (std::int64_t i = 0; i < messages; ++i)
      EXPECT_EQ(values[(messages - 1 - i) * elements + elements / 2], static_cast<float>(1000 * round + i));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, EngineExecutors, testing::Values("mpi", "tcp"));

TEST(Teams, GatherReduceAndAgree) {
  const Team team = team_of_first(ranks);
  const int rank = team.rank();
  EXPECT_EQ(rank, the_world->rank());
  EXPECT_EQ(team.gather(rank), (std::vector{0, 1, 2, 3}));
  const double r = rank;
  EXPECT_EQ(team.gather(std::vector{r, -r})[2], (std::vector{2.0, -2.0}));
  EXPECT_EQ(team.min(r), 0);
  EXPECT_EQ(team.max(r), 3);
  EXPECT_EQ(team.sum(std::int64_t{rank}), 6);
  std::vector<double> values{r, 0.5};
  team.sum(values);
  EXPECT_EQ(values, (std::vector{6.0, 2.0}));
  std::vector<double> many(200000, r);
  team.sum(many);
  EXPECT_EQ(many, std::vector<double>(many.size(), 6));
  EXPECT_TRUE(team.all(true));
  EXPECT_FALSE(team.all(rank != 2));
  EXPECT_EQ(team.first(rank < 2 ? "" : "rank " + std::to_string(rank)), "rank 2");
  EXPECT_EQ(team.first(rank == 0 ? "rank 0" : ""), "rank 0");
  EXPECT_EQ(team.first(""), "");
  const std::string long_text(300000, static_cast<char>('a' + rank));
  EXPECT_EQ(team.first(rank == 3 ? long_text : ""), std::string(300000, 'd'));
  int told = rank;
  team.broadcast(&told, sizeof told);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(team.host().size, ranks) << "all ranks are of this host";
  EXPECT_EQ(team.host().rank, rank);
}

TEST(Teams, OfTheFirstLeaveTheOthersAlone) {
  for (int members : {1, 2, 3}) {
    const Team team = the_world->team(members);
    EXPECT_EQ(team.is_member(), the_world->rank() < members);
    if (!team.is_member()) continue;
    EXPECT_EQ(team.sum(std::int64_t{1}), members);
  }
  EXPECT_EQ(the_world->all().sum(std::int64_t{1}), ranks);
  EXPECT_THROW(team_of_first(ranks + 1), UsageError);
}

TEST(Teams, NobodyLeavesABarrierBeforeTheLastHasCome) {
  for (int late = 0; late < ranks; ++late) {
    the_world->all().barrier();
    const auto start = std::chrono::steady_clock::now();
    if (the_world->rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    late % 2 == 0 ? the_world->all().barrier() : the_world->all().wait_asleep();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40)) << "rank " << late;
  }
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
