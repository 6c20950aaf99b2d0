// SPDX-License-Identifier: Apache-2.0
// Every registered method against the double-precision recurrence over the whole sequence: each
// pass, mode and gate kind, several rank counts, scans and head groups. What takes packed documents
// has some, what has softmax attention runs without a causal mask too, and what knows a rule with
// matrices runs all of it under that rule too. States come in and go out in three of four problems
// that may have them.
//
//   every_method_test local|mpi [GoogleTest's flags]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/case.hpp"
#include "harness/layers/draw.hpp"
#include "harness/layers/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "tests/held_out_seed.hpp"
#include "tests/launched_tests.hpp"
#include "tests/sp_methods/method_problems.hpp"
#include "tests/sp_methods/sequence_problems.hpp"

namespace {

using namespace baton;
using namespace baton::test;

/// The oracle of a layer, which methods, passes and modes share.
const LayerOracle& oracle_of(const LayerProblem& problem) {
  static std::map<std::string, LayerOracle> solved;
  if (solved.size() == 2000) solved.clear();  // 10,000 took 860 MB
  return solved.try_emplace(oracle_key(problem), problem).first->second;
}

/// Fills the inputs of this process's ranks, poisons the outputs, runs twice and compares.
class EveryMethod : public testing::Test {
 public:
  EveryMethod(ExecutorsUnderTest& executors, Problem problem)
      : executors_(executors), problem_(std::move(problem)) {}

  void TestBody() override {
    const auto& [method, layer, ranks, gates, seed] = problem_;
    if (!executors_.have(ranks)) GTEST_SKIP() << "too few ranks were launched";
    const Team& team = executors_.team(ranks);
    if (!team.is_member()) return;
    if (const Refusal refusal = method->unsupported(layer, ranks)) GTEST_SKIP() << refusal.reason();
    const auto schedules = build_all(*method, layer, ranks);
    ASSERT_NO_THROW(check(method->name, schedules));
    Executor& executor = executors_.on(ranks);
    if (const Refusal refusal = executor.unsupported(schedules)) {
      // Only on a device may a kernel have no body; only a native may be at home on one executor
      // alone.
      ASSERT_TRUE(executor.device() != nullptr || implementation_of(schedules) != "schedule")
          << refusal.reason();
      GTEST_SKIP() << refusal.reason();
    }
    executor.prepare(schedules);
    for (int round = 0; round < 2; ++round) {  // each with inputs of its own
      const LayerOracle& oracle = oracle_of({method->attention, layer.share, ranks, problem_.is_alone(),
                                             gates, seed + round, layer.dtype, layer.rule, layer.starts,
                                             layer.segmented, layer.mask, layer.states, layer.shares});
      write_layer(executor, schedules, *method, oracle);
      executor.synchronise();
      executor.run();
      const Comparison comparison = compare_layer(executor, schedules, *method, oracle);
      EXPECT_EQ(team.sum(comparison.wrong), 0) << team.first(comparison.first);
    }
  }

 private:
  ExecutorsUnderTest& executors_;
  Problem problem_;
};

std::vector<Problem> problems(const std::string& executor) {
  const bool is_local = !find_executor(executor).process_per_rank;
  const bool is_on_devices = executor == "nccl" || executor == "peer";
  std::vector<Problem> of_all;
  for (const SpMethod* method : sp_methods()) {
    std::vector<Problem> all;
    for (int ranks : is_local ? std::vector{1, 2, 3, 4, 8} : std::vector{1, 2, 3, 4})
      for (GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
        for (const LayerShape& shape : shapes(method->attention, gate))
          for (bool segmented : {false, true})
            if (!segmented || method->attention == Attention::linear)
              add_variants(all, *method, shape, ranks, segmented);
    for (int ranks : {1, 2, 3, 4}) {
      add_packed(all, *method, ranks);
      add_masks(all, *method, ranks);
      add_padded(all, *method, ranks);
      add_unequal(all, *method, ranks);
      add_convolutions(all, *method, ranks);
      if (ranks != 3) add_batch(all, *method, ranks);
    }
    if (is_local) add_unequal(all, *method, 8);
    if (is_on_devices) add_device_problems(all, *method);
    // A native runs where its executor is.
    if (!is_local) add_choices(all, *method);
    add_large(all, *method);
    all.push_back(held_out(*method));
    if (method->attention == Attention::softmax) all.push_back(held_out(*method, true));
    of_all.insert(of_all.end(), all.begin(), all.end());
    for (const Rule rule : {Rule::delta, Rule::low_rank}) {
      if (is_on_devices) continue;
      const auto under = under_rule(rule, *method, all, is_local);
      of_all.insert(of_all.end(), under.begin(), under.end());
    }
  }
  for (Problem& problem : of_all) fit(problem);
  return of_all;
}

}  // namespace

int main(int argc, char** argv) {
  return launched_tests(argc, argv, [](ExecutorsUnderTest& executors) {
    if (executors.world().rank() == 0) fmt::print("held-out seed {}\n", held_out_seed());
    for (const Problem& problem : problems(executors.name()))
      testing::RegisterTest(
          problem.method->name.c_str(), problem.name().c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [&executors, problem]() -> testing::Test* { return new EveryMethod(executors, problem); });
  });
}
