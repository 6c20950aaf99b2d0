// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/softmax_steps.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/sp_methods/turns.hpp"

namespace {

using namespace baton;
using namespace baton::test;

TEST(SoftmaxSteps, QueriesThatSeeKeysAreTheLastOnes) {
  const int P = 4;
  Schedule s(0, P);
  const Layer layer = softmax_layer(Pass::forward);
  const std::int64_t all = layer.share.tokens;
  for (int queries = 0; queries < P; ++queries)
    for (int keys = 0; keys < P; ++keys) {
      const bool later = queries >= keys;
      EXPECT_EQ(SoftmaxSteps(s, layer, contiguous).seeing({queries, keys}), later ? all : 0);
      EXPECT_EQ(SoftmaxSteps(s, layer, zigzag).seeing({queries, keys}), later ? all : all / 2);
    }
}

/// The steps that `step` waits for, through any chain.
std::set<int> awaited(const Schedule& s, int step) {
  std::set<int> all, open{step};
  while (!open.empty()) {
    const int next = *open.begin();
    open.erase(open.begin());
    for (const int before : s.steps()[next].waits_for)
      if (all.insert(before).second) open.insert(before);
  }
  return all;
}

/// Messages recorded between the work of a turn and that of the turn before, and how many of them
/// the work waits for.
struct UnderWork {
  int messages = 0, awaited = 0;
};

UnderWork under_work(const std::vector<Schedule>& schedules) {
  UnderWork found;
  for (const Schedule& s : schedules) {
    int first = 0;
    for (const int step : work_steps(s)) {
      const std::set<int> before = awaited(s, step);
      for (; first < step; ++first) {
        if (!s.steps()[first].is_message()) continue;
        ++found.messages;
        found.awaited += before.contains(first);
      }
    }
  }
  return found;
}

TEST(Turns, MessagesForTheNextTurnRunUnderTheWorkOfATurnUnlessTheyAreExposed) {
  for (const char* method : {"token_ring", "token_ring_zigzag", "dist_flash_attention"})
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto in = [&](Mode mode) {
        return under_work(schedules_of(method, softmax_layer(pass, Dtype::f32, mode), 6));
      };
      const UnderWork overlapped = in(Mode::overlapped), exposed = in(Mode::exposed);
      EXPECT_EQ(overlapped.awaited, 0) << method;
      EXPECT_EQ(exposed.awaited, exposed.messages) << method;
      EXPECT_GT(exposed.messages, 0) << method;
    }
}

}  // namespace
