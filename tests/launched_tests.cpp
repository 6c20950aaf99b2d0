// SPDX-License-Identifier: Apache-2.0
// Launching of tests.
#include "tests/launched_tests.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/process/world.hpp"

namespace baton {

namespace {

/// The most ranks up to four that this machine can run, 0 if it lacks something for one already, and says so.
int most_ranks(const ExecutorEntry& entry) {
  int ranks = 4;
  while (ranks > 0 && entry.lacking(ranks)) --ranks;
  if (ranks < 4 && launched_rank() == 0)
    std::printf("executor %s, more than %d ranks: %s\n", entry.name.c_str(), ranks,
                entry.lacking(ranks + 1).reason().c_str());
  return ranks;
}

}  // namespace

bool ExecutorsUnderTest::have(int ranks) const {
  return !find_executor(name_).process_a_rank || ranks <= world_.size();
}

const Team& ExecutorsUnderTest::team(int ranks) {
  const auto found = teams_.find(ranks);
  if (found != teams_.end()) return found->second;
  return teams_.emplace(ranks, world_.team(find_executor(name_).process_a_rank ? ranks : 1)).first->second;
}

Executor& ExecutorsUnderTest::on(int ranks) {
  auto& executor = made_[ranks];
  if (!executor) executor = find_executor(name_).make(ranks);
  return *executor;
}

int launched_tests(int argc, char** argv, const std::function<void(ExecutorsUnderTest&)>& add_tests) {
  int result = 1;
  const int failed = exit_code_of([&] {
    if (argc < 2) throw UsageError("an executor must be named");
    const std::string executor = argv[1];
    setenv("BATON_SEED", std::to_string(held_out_seed()).c_str(), 1);  // the ranks inherit it
    const ExecutorEntry& entry = find_executor(executor);
    const int ranks = most_ranks(entry);
    if (ranks == 0) {
      result = nothing_to_test_on;
      return;
    }
    if (entry.process_a_rank) relaunch(ranks, 1, argv);
    run_in_world(&argc, &argv, [&](const World& world) {
      testing::GTEST_FLAG(brief) = true;  // thousands of cases: only failures are worth a line
      testing::InitGoogleTest(&argc, argv);
      ExecutorsUnderTest executors(world, executor);
      add_tests(executors);
      if (world.rank() > 0) {
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
      }
      result = RUN_ALL_TESTS();
      if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
    });
  });
  return failed != 0 ? failed : result;
}

std::uint64_t held_out_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("BATON_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  }();
  return seed;
}

}  // namespace baton
