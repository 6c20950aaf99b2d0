// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/registry.hpp"

namespace {

using namespace baton;

TEST(Executors, AreFoundByNameAndListedInItsOrder) {
  EXPECT_TRUE(find_executor("mpi").process_per_rank);
  const auto all = executors();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name < b->name; }));
  EXPECT_NE(std::find(all.begin(), all.end(), &find_executor("local")), all.end());
}

TEST(Executors, RefuseASecondOfAName) {
  EXPECT_EXIT(RegisteredExecutor({.name = "local"}), testing::ExitedWithCode(2),
              "the executor .local. is registered twice");
  EXPECT_NE(find_executor("local").make, nullptr) << "the first one stays";
}

TEST(Executors, SayWhichIsNotBuiltIn) {
  try {
    find_executor("mpii");
    FAIL() << "found";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "the executor 'mpii' is not built in");
  }
}

TEST(RegistryOfAnyKind, FindsListsAndRefuses) {
  Registry<int> registry("number");
  registry.add("two", 2);
  registry.add("one", 1);
  const int* two = registry.find("two");
  ASSERT_NE(two, nullptr);
  for (int i = 3; i < 100; ++i) registry.add(std::to_string(i), i);
  EXPECT_EQ(two, registry.find("two")) << "an entry never moves";
  EXPECT_EQ(registry.at("one"), 1);
  EXPECT_EQ(registry.find("three"), nullptr);
  EXPECT_THROW(registry.at("three"), UsageError);
  EXPECT_THROW(registry.add("two", 22), UsageError);
  EXPECT_EQ(*two, 2);
}

}  // namespace
