// SPDX-License-Identifier: Apache-2.0
#include "harness/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace baton;

constexpr Shape shape{1, 4, 3, 2};

/// A run of `name` on three local ranks, ready to be compared.
std::unique_ptr<Executor> run(const std::string& name, const Subject& subject) {
  auto executor = find_executor("local").make(subject.ranks);
  executor->prepare(build_all(find_collective(name), subject.shape,
                              {.ranks = subject.ranks, .blocks = 2, .direction = subject.direction}));
  write_inputs(*executor, subject);
  executor->run();
  return executor;
}

Subject subject_of(const std::string& name, Direction direction = Direction::forward) {
  return {find_collective(name).kind, shape, 3, direction, 9};
}

TEST(Verify, FindsNothingWrongWhereNothingIs) {
  for (const char* name : {"all_scan", "ring_all_gather", "ring_exchange"})
    EXPECT_EQ(compare(*run(name, subject_of(name)), subject_of(name)).wrong, 0) << name;
}

TEST(Verify, CountsAndNamesASingleWrongElement) {
  for (const char* name : {"all_scan", "ring_all_gather", "ring_exchange"}) {
    const auto executor = run(name, subject_of(name));
    executor->write(2, {1, 5, 1}, std::vector{1e6f});
    const Comparison found = compare(*executor, subject_of(name));
    EXPECT_EQ(found.wrong, 1) << name;
    EXPECT_NE(found.first.find("rank 2, element 5: 1000000"), std::string::npos) << found.first;
  }
}

TEST(Verify, MissesNoElementThatNobodyWrote) {
  const Subject subject = subject_of("all_scan");
  auto executor = find_executor("local").make(subject.ranks);
  executor->prepare(build_all(find_collective("all_scan"), shape, {.ranks = 3, .blocks = 2}));
  write_inputs(*executor, subject);
  EXPECT_EQ(compare(*executor, subject).wrong, 2 * shape.state_elements());  // all but the first rank's
}

TEST(Verify, WantsTheFirstRanksOutputUntouched) {
  const Subject subject = subject_of("all_scan");
  const auto executor = run("all_scan", subject);
  executor->write(0, {1, 0, 1}, std::vector{0.0f});
  EXPECT_EQ(compare(*executor, subject).wrong, 1);
}

TEST(Verify, TellsTheDirections) {
  const auto forward = run("all_scan", subject_of("all_scan"));
  EXPECT_GT(compare(*forward, subject_of("all_scan", Direction::reverse)).wrong, 0);
}

}  // namespace
