// SPDX-License-Identifier: Apache-2.0
#include "tests/launched_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/process/exit_codes.hpp"
#include "harness/process/world.hpp"
#include "tests/held_out_seed.hpp"
#include "tests/relaunch.hpp"

namespace baton {

namespace {

/// The most ranks up to four that this machine can run, 0 if it lacks something for one already,
/// and says so.
int most_ranks(const ExecutorEntry& entry) {
  int ranks = 4;
  while (ranks > 0 && entry.lacking(ranks)) --ranks;
  if (ranks < 4 && launched_rank() == 0)
    std::printf("executor %s, more than %d ranks: %s\n", entry.name.c_str(), ranks,
                entry.lacking(ranks + 1).reason().c_str());
  return ranks;
}

/// Thousands of cases in a few lines: each failing case with its message, as many a suite as a
/// reader reads, and how many were skipped for each reason.
class Summary : public testing::EmptyTestEventListener {
 public:
  /// Remembers the test, since GoogleTest holds its lock while it reports a result.
  void OnTestStart(const testing::TestInfo& test) override {
    suite_ = test.test_suite_name();
    name_ = suite_ + "." + test.name();
    has_failed_ = false;
  }

  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (part.skipped()) ++skipped_[part.message()];
    if (!part.failed() || has_failed_) return;  // the first message of a test tells most
    has_failed_ = true;
    auto& lines = failed_[suite_];
    const std::string line = "[  FAILED  ] " + name_ + "\n" + where(part) + part.message() + "\n";
    // A run that hangs or crashes later has said this much.
    if (lines.empty()) std::fprintf(stderr, "%s", ("the first of its suite:\n" + line).c_str());
    lines.push_back(line);
  }

  /// The failing cases, or an empty string.
  std::string failures() const {
    constexpr std::size_t most_a_suite = 10;
    std::string text;
    for (const auto& [suite, lines] : failed_) {
      for (std::size_t i = 0; i < std::min(lines.size(), most_a_suite); ++i) text += lines[i];
      if (lines.size() > most_a_suite)
        text += "and " + std::to_string(lines.size() - most_a_suite) + " more cases of " + suite + "\n";
    }
    return text;
  }

  std::string counts() const {
    std::string text;
    for (const auto& [reason, count] : skipped_)
      text += "[  SKIPPED ] " + std::to_string(count) + " tests: " + reason + "\n";
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    text += "[  PASSED  ] " + std::to_string(all.successful_test_count()) + " tests.\n";
    if (all.failed_test_count() > 0)
      text += "[  FAILED  ] " + std::to_string(all.failed_test_count()) + " tests.\n";
    return text;
  }

 private:
  static std::string where(const testing::TestPartResult& part) {
    if (part.file_name() == nullptr) return "";
    return std::string(part.file_name()) + ":" + std::to_string(part.line_number()) + ": ";
  }

  std::string suite_;
  std::string name_;
  bool has_failed_ = false;
  std::map<std::string, std::vector<std::string>> failed_;  // by suite
  std::map<std::string, int> skipped_;                      // by reason
};

/// Runs all registered tests and prints the summary on rank 0: its own failures or, where it has
/// none, those of the first rank that has some.
int run_and_summarise(const World& world) {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  auto* summary = new Summary;  // GoogleTest owns it
  listeners.Append(summary);
  const int result = RUN_ALL_TESTS();
  const std::string failures = world.all().first(summary->failures());
  if (world.rank() == 0) std::printf("%s%s", failures.c_str(), summary->counts().c_str());
  return result;
}

/// Has GoogleTest run a fifth of many tests, which the commit draws, unless BATON_ALL_TESTS is set:
/// mpi and tcp run the engine of local, so all of them say little more.
void draw_a_fifth() {
  constexpr int many = 100;
  if (std::getenv("BATON_ALL_TESTS") != nullptr) return;
  if (testing::UnitTest::GetInstance()->total_test_count() < many) return;
  setenv("GTEST_TOTAL_SHARDS", "5", 0);
  setenv("GTEST_SHARD_INDEX", std::to_string(std::hash<std::string>{}(commit()) % 5).c_str(), 0);
}

}  // namespace

bool ExecutorsUnderTest::have(int ranks) const {
  return !find_executor(name_).process_per_rank || ranks <= world_.size();
}

const Team& ExecutorsUnderTest::team(int ranks) {
  const auto found = teams_.find(ranks);
  if (found != teams_.end()) return found->second;
  return teams_.emplace(ranks, world_.team(find_executor(name_).process_per_rank ? ranks : 1)).first->second;
}

Executor& ExecutorsUnderTest::on(int ranks) {
  auto& executor = made_[ranks];
  if (!executor) executor = find_executor(name_).make(ranks);
  return *executor;
}

int launched_tests(int argc, char** argv, const std::function<void(ExecutorsUnderTest&)>& add_tests) {
  return exit_code_of([&] {
    int result = 1;
    if (argc < 2) throw UsageError("an executor must be named");
    std::string executor = argv[1];
    if (const auto colon = executor.find(':'); colon != std::string::npos) {
      executor_choices().ranks_per_gpu = std::stoi(executor.substr(colon + 1));
      executor.resize(colon);
    }
    setenv("BATON_SEED", std::to_string(held_out_seed()).c_str(), 1);  // the ranks inherit it
    const ExecutorEntry& entry = find_executor(executor);
    const bool draws = (executor == "mpi" || executor == "tcp") && argc == 2;
    const int ranks = most_ranks(entry);
    if (ranks == 0) return nothing_to_test_on;
    if (entry.process_per_rank) relaunch(ranks, argv);
    run_in_world(&argc, &argv, [&](const World& world) {
      testing::InitGoogleTest(&argc, argv);
      ExecutorsUnderTest executors(world, executor);
      add_tests(executors);
      if (draws) draw_a_fifth();
      result = run_and_summarise(world);
      if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) result = 1;
    });
    return result;
  });
}

}  // namespace baton
