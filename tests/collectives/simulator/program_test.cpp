// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "collectives/collective.hpp"

namespace {

using namespace baton;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Shape shape{.heads = 1, .d_k = 12, .d_v = 3};

/// The rates that tell a copy's seconds (1 a byte), a combine's (1 an operation) and a kernel's (1,
/// or 10 of the one called slow) from one another.
DeviceRates rates() {
  constexpr double unbounded = 1e300;
  DeviceRates rates;
  rates.copy = {.flops_per_second = unbounded, .bytes_per_second = 1};
  rates.combine = rates.kernel = {.flops_per_second = 1, .bytes_per_second = unbounded};
  rates.kernels["slow"] = {.flops_per_second = 0.1, .bytes_per_second = unbounded};
  return rates;
}

Topology machine(DeviceRates rates) {
  Topology topology;
  topology.device = std::move(rates);
  return topology;
}

Program program_of(const char* collective, int rank, const Split& split) {
  return {collective, build(find_collective(collective), shape, rank, split), machine(rates())};
}

/// How many programs are kept of all ranks'.
std::size_t kept(const char* collective, const Split& split) {
  ProgramPool pool;
  std::set<std::shared_ptr<const Program>> programs;
  for (int rank = 0; rank < split.ranks; ++rank)
    programs.insert(pool.keep(program_of(collective, rank, split)));
  return programs.size();
}

/// The seconds of the combine of rank 1 in a chain of three ranks with affine maps.
double affine_seconds(const DeviceRates& rates) {
  const Shape affine{.heads = 1, .d_k = 12, .d_v = 3, .map = MapKind::affine};
  const Program program("chain", build(find_collective("ring_scan"), affine, 1, {.ranks = 3}),
                        machine(rates));
  double seconds = 0;
  for (const Task& task : program.tasks())
    if (task.verb == Verb::combine) seconds += task.seconds;
  EXPECT_EQ(program.matrix_seconds(), seconds);
  return seconds;
}

TEST(Program, ACombineByMatricesTakesTwoOperationsAKeyOfEachElement) {
  DeviceRates some = rates();
  EXPECT_EQ(affine_seconds(some), 2 * 12 * (12 * 3));
  some.combine.measured.points = {{0, 0}, {1, 1}};
  some.kernel.flops_per_second = 2;
  EXPECT_EQ(affine_seconds(some), 12 * (12 * 3)) << "a curve over bytes says nothing of products";
  some.kernels["affine_combine"] = {.flops_per_second = 4, .bytes_per_second = 1e300};
  EXPECT_EQ(affine_seconds(some), 12 * (12 * 3) / 2);
  EXPECT_EQ(program_of("ring_scan", 1, {.ranks = 3}).matrix_seconds(), 0);
}

TEST(ProgramPool, RanksWithTheSamePartShareAProgram) {
  EXPECT_EQ(kept("all_scan", {.ranks = 50, .blocks = 4}), 3u);  // the first, those between, the last
  EXPECT_EQ(kept("all_scan", {.ranks = 50, .blocks = 4, .direction = Direction::reverse}), 3u);
  EXPECT_EQ(kept("all_scan", {.ranks = 2, .blocks = 4}), 2u);
  // Peers are told relative to the rank, and only rank 1's next and rank 0's one before wrap
  // around.
  EXPECT_EQ(kept("ring_exchange", {.ranks = 50}), 3u);
}

TEST(ProgramPool, TellsProgramsApartThatDifferInOneThing) {
  ProgramPool pool;
  const auto keep = [&pool](int count, int peer, double flops, const char* kernel, bool waits) {
    Schedule s(1, 4);
    const Slice x = s.scratch("x", count), y = s.scratch("y", count);
    s.compute({.name = kernel, .body = nullptr, .flops = flops}, {waits ? x : y}, {y});
    s.send(peer, x);
    return pool.keep(Program("test", s, machine(rates())));
  };
  const auto first = keep(8, 2, 5, "fast", true);
  EXPECT_EQ(keep(8, 2, 5, "fast", true), first);
  EXPECT_EQ(keep(8, 2, 5, "called otherwise", true), first) << "only what it costs matters";
  EXPECT_NE(keep(9, 2, 5, "fast", true), first);
  EXPECT_NE(keep(8, 3, 5, "fast", true), first);
  EXPECT_NE(keep(8, 2, 6, "fast", true), first);
  EXPECT_NE(keep(8, 2, 5, "slow", true), first);
  EXPECT_NE(keep(8, 2, 5, "fast", false), first);
}

TEST(Program, FindsMessagesByVerbPeerAndNumber) {
  Schedule s(3, 6);
  const Slice x = s.scratch("x", 8);
  s.send(5, x.part(0, 1));
  s.recv(x.part(1, 1), 1);
  s.send(5, x.part(2, 1));
  s.send(1, x.part(3, 1));
  const Program program("test", s, machine(rates()));
  EXPECT_EQ(program.find_message(Verb::send, 2, 0), 0);
  EXPECT_EQ(program.find_message(Verb::recv, -2, 0), 1);
  EXPECT_EQ(program.find_message(Verb::send, 2, 1), 2);
  EXPECT_EQ(program.find_message(Verb::send, -2, 0), 3);
  EXPECT_EQ(program.find_message(Verb::send, 2, 2), -1);
  EXPECT_EQ(program.find_message(Verb::recv, 2, 0), -1);
  EXPECT_EQ(program.find_message(Verb::send, 1, 0), -1);
  EXPECT_EQ(program.sent_bytes(), 3 * element_bytes);
}

TEST(Program, FindsEveryMessageOfEveryCollective) {
  for (const Collective* collective : collectives())
    for (int rank = 0; rank < 7; ++rank) {
      const Schedule schedule = build(*collective, shape, rank, {.ranks = 7, .blocks = 3});
      if (!schedule.natives().empty()) continue;
      const Program program(collective->name, schedule, machine(rates()));
      for (int i = 0; i < static_cast<int>(schedule.steps().size()); ++i) {
        const Step& step = schedule.steps()[i];
        if (step.is_message()) {
          EXPECT_EQ(program.find_message(step.verb, step.peer - rank, step.sequence), i) << collective->name;
        }
      }
    }
}

TEST(Program, SuccessorsAreWhoWaits) {
  const Split split{.ranks = 5, .blocks = 3};
  const Schedule schedule = build(find_collective("hierarchical_scan"), shape, 2, split);
  const Program program("test", schedule, machine(rates()));
  const auto& steps = schedule.steps();
  std::set<std::pair<int, int>> expected, found;
  for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
    EXPECT_EQ(program.graph().blockers()[i], static_cast<int>(steps[i].waits_for.size()));
    for (int before : steps[i].waits_for) expected.emplace(before, i);
    for (int after : program.graph().waiters(i)) found.emplace(i, after);
  }
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(found, expected);
}

/// Twelve sends, a fence, and then receives that wait for all of them, a copy and kernels.
TEST(Program, JoinsStandBetweenTheStepsOnBothSidesOfAFence) {
  constexpr int many = 12;
  Schedule s(0, 2);
  const Slice x = s.scratch("x", many), y = s.scratch("y", many), z = s.scratch("z", many);
  for (int i = 0; i < many; ++i) s.send(1, x.part(i, 1));
  s.fence();
  for (int i = 0; i < many; ++i) s.recv(y.part(i, 1), 1);
  for (int i = 0; i < 2; ++i) s.compute({.name = "kernel"}, {z.part(i, 1)}, {});
  const Program program("test", s, machine(rates()));
  constexpr int steps = 2 * many + 2, of_messages = steps, of_kernels = steps + 1;
  ASSERT_EQ(program.steps(), steps);
  ASSERT_EQ(program.graph().size(), steps + 2);
  for (int i = 0; i < many; ++i)
    EXPECT_THAT(program.graph().waiters(i), ElementsAre(of_messages, of_kernels));
  EXPECT_EQ(program.graph().waiters(of_messages).size(), many);
  EXPECT_THAT(program.graph().waiters(of_kernels), ElementsAre(2 * many, 2 * many + 1));
  EXPECT_TRUE(program.is_join(of_messages));
  EXPECT_FALSE(program.is_join(steps - 1));
  EXPECT_TRUE(program.tasks()[0].feeds_message) << "a receive waits for it";
  EXPECT_FALSE(program.tasks()[many].feeds_message);
}

TEST(Program, KnowsWhichLocalStepsSomeMessageWaitsFor) {
  Schedule s(0, 2);
  const Slice a = s.scratch("a", 1), b = s.scratch("b", 1), c = s.scratch("c", 1), d = s.scratch("d", 1);
  s.copy(b, a);  // feeds the send through the next copy
  s.copy(c, b);
  s.send(1, c);
  s.copy(d, a);  // feeds nothing
  const Program program("test", s, machine(rates()));
  EXPECT_TRUE(program.tasks()[0].feeds_message);
  EXPECT_TRUE(program.tasks()[1].feeds_message);
  EXPECT_FALSE(program.tasks()[3].feeds_message);
  EXPECT_THAT(program.graph().waiters(1), ElementsAre(2));
  EXPECT_THAT(program.graph().waiters(3), IsEmpty());
}

TEST(Program, CostsWhatTheDeviceTakes) {
  Schedule s(0, 1);
  const Slice x = s.scratch("x", 10), y = s.scratch("y", 10);
  const Map map{s.scratch("decay", 2), s.scratch("state", 6), 3};
  const Map state = s.scratch_map("into", map).only_state();
  s.copy(x, y);
  s.combine(state, state, map);
  s.compute({.name = "some", .body = nullptr, .flops = 7, .bytes = 1e9}, {x}, {y});
  s.compute({.name = "slow", .body = nullptr, .flops = 7}, {x}, {y});
  const Program program("test", s, machine(rates()));
  std::vector<double> seconds;
  for (const Task& task : program.tasks()) seconds.push_back(task.seconds);
  EXPECT_THAT(seconds, ElementsAre(2 * 10 * element_bytes, 2 * 6, 7, 70));
}

}  // namespace
