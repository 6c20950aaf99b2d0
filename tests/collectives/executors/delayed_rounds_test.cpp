// SPDX-License-Identifier: Apache-2.0
// Rounds that ranks begin at times of their own must leave the same bits as any other round. Each
// rank waits for a random time before each round, and no barrier stands between rounds.
//
//   delayed_rounds_test EXECUTOR [GoogleTest's flags]
//
// BATON_ROUNDS sets the number of rounds; BATON_SEED the inputs and the delays.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "harness/cases/case.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/cases/verify.hpp"
#include "harness/layers/workload.hpp"
#include "harness/measure/samples.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"
#include "tests/held_out_seed.hpp"
#include "tests/launched_tests.hpp"

namespace {

using namespace baton;

int rounds() {
  const char* given = std::getenv("BATON_ROUNDS");
  return given == nullptr ? 300 : std::atoi(given);
}

/// Busy, since a sleep of so few microseconds would take a scheduler's tick.
void wait(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) continue;
}

class DelayedRounds : public testing::Test {
 public:
  DelayedRounds(ExecutorsUnderTest& executors, Case bench_case)
      : executors_(executors), case_(std::move(bench_case)) {}

  void TestBody() override {
    if (!executors_.have(case_.ranks)) GTEST_SKIP() << "too few ranks were launched";
    const Team& team = executors_.team(case_.ranks);
    if (!team.is_member()) return;
    Executor& executor = executors_.on(case_.ranks);
    const auto schedules = case_.workload->build(case_.split(case_.blocks));
    if (const Refusal refusal = executor.unsupported(schedules)) GTEST_SKIP() << refusal.reason();
    executor.prepare(schedules);
    Oracles oracles(team);
    case_.workload->load(executor, schedules, held_out_seed(), oracles);
    executor.synchronise();
    RoundWatch watch(executor, schedules);
    std::mt19937_64 random(held_out_seed() + static_cast<std::uint64_t>(team.rank()));
    std::uniform_int_distribution<int> microseconds(0, 60);
    for (int round = 1; round <= rounds(); ++round) {
      watch.before_round();
      wait(std::chrono::microseconds(microseconds(random)));
      executor.run();
      watch.after_round("round " + std::to_string(round));
    }
    EXPECT_EQ(team.sum(watch.found().wrong), 0) << team.first(watch.found().first);
    const Comparison last = case_.workload->compare(executor, schedules, held_out_seed(), oracles);
    EXPECT_EQ(team.sum(last.wrong), 0) << team.first(last.first);
  }

 private:
  ExecutorsUnderTest& executors_;
  Case case_;
};

std::vector<Case> all_cases(const ExecutorsUnderTest& executors) {
  const std::string& name = executors.name();
  const bool on_host = find_executor(name).tensors == Dtype::f32;
  Layer layer;
  layer.share = {on_host ? 128 : 2048, 2, on_host ? 16 : 128, on_host ? 16 : 128, 64, GateKind::vector};
  layer.dtype = on_host ? Dtype::f32 : Dtype::bf16;
  layer.segmented = !on_host;
  const Shape shape{.heads = on_host ? 1 : 8, .d_k = 128, .d_v = 128, .tokens = 1};
  std::vector<Case> all;
  for (const char* scan : {"all_scan", "two_shot"})
    all.push_back({.workload = collective_workload(find_collective(scan), shape, Direction::forward)});
  all.push_back({.workload = operator_workload(find_method("zeco"), layer, {GateDraw::mixed})});
  for (Case& bench_case : all)
    bench_case.backend = &find_backend(name), bench_case.ranks = 2, bench_case.blocks = 4;
  return all;
}

void register_tests(ExecutorsUnderTest& executors) {
  for (const Case& bench_case : all_cases(executors))
    testing::RegisterTest(
        "DelayedRounds", bench_case.workload->name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&executors, bench_case]() -> testing::Test* { return new DelayedRounds(executors, bench_case); });
}

}  // namespace

int main(int argc, char** argv) { return launched_tests(argc, argv, register_tests); }
