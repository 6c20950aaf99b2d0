// SPDX-License-Identifier: Apache-2.0
// Launching of tests.
#include "tests/launched_tests.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/guard.hpp"

namespace baton {

int launched_tests(int argc, char** argv,
                   const std::function<void(const World&, const std::string&)>& add_tests) {
  int result = 1;
  const int failed = guarded([&] {
    if (argc < 2) throw UsageError("an executor must be named");
    const std::string executor = argv[1];
    setenv("BATON_SEED", std::to_string(held_out_seed()).c_str(), 1);  // the ranks inherit it
    if (find_executor(executor).process_a_rank) relaunch(4, 1, argv);
    run_in_world(&argc, &argv, [&](const World& world) {
      testing::GTEST_FLAG(brief) = true;  // thousands of cases: only failures are worth a line
      testing::InitGoogleTest(&argc, argv);
      add_tests(world, executor);
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
