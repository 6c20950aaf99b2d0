// SPDX-License-Identifier: Apache-2.0
// 123-doubling folds less often than recursive doubling, in at most one round more.
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/collective.hpp"

namespace {

using namespace baton;

constexpr Shape shape{.heads = 1, .d_k = 2, .d_v = 2};

/// The most steps of a verb that any rank has.
int most(const char* name, int ranks, Verb verb) {
  int found = 0;
  for (const Schedule& schedule : build_all(find_collective(name), shape, {.ranks = ranks})) {
    const auto& steps = schedule.steps();
    const auto is_verb = [verb](const Step& step) { return step.verb == verb; };
    found = std::max(found, static_cast<int>(std::count_if(steps.begin(), steps.end(), is_verb)));
  }
  return found;
}

TEST(Doubling123, HasTheRoundsOfItsPaper) {
  // ceil(log2(P-1) + log2(4/3))
  for (const auto& [ranks, rounds] :
       {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {7, 3}, {8, 4}, {13, 4}, {14, 5}})
    EXPECT_EQ(most("doubling_123", ranks, Verb::send), rounds) << ranks << " ranks";
}

TEST(Doubling123, FoldsOnceARoundAndTheOwnMapOnce) {
  EXPECT_EQ(most("doubling_123", 16, Verb::combine), 4 + 1) << "five rounds, the first without a fold";
  EXPECT_EQ(most("recursive_doubling", 16, Verb::combine), 5);
  EXPECT_EQ(most("doubling_123", 256, Verb::combine), 8 + 1);
  EXPECT_EQ(most("recursive_doubling", 256, Verb::combine), 13);
}

}  // namespace
